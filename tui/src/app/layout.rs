//! What stands where at which size; the state machine pages by it, the renderer paints by it.

/// Below this nothing useful fits.
pub(crate) const MIN_WIDTH: u16 = 60;
/// Below this nothing useful fits.
pub(crate) const MIN_HEIGHT: u16 = 12;

/// How much the strip tells of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeForm {
    /// Bars, amounts, socket and CPUs.
    Wide,
    /// Bars and amounts.
    Bars,
    /// Percentages with their words.
    Words,
    /// Two percentages; the line's title says which.
    Numbers,
}

impl NodeForm {
    const ALL: [Self; 4] = [Self::Wide, Self::Bars, Self::Words, Self::Numbers];

    /// The least width of one node in this form.
    pub(crate) fn width(self) -> u16 {
        match self {
            Self::Wide => 100,
            Self::Bars => 58,
            Self::Words => 25,
            Self::Numbers => 13,
        }
    }
}

/// The heights of the main screen's parts, top to bottom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Regions {
    /// The header's lines.
    pub(crate) header: u16,
    /// The strip's lines, its title apart.
    pub(crate) strip: u16,
    /// Whether the strip has a title line.
    pub(crate) strip_title: bool,
    pub(crate) form: NodeForm,
    /// Nodes side by side.
    pub(crate) nodes_per_line: u16,
    /// Rows of processes; the table's title and column titles come on top.
    pub(crate) rows: u16,
    /// Lines for the selected process's sentence and its first finding.
    pub(crate) sentence: u16,
}

/// The parts of a screen of this size on a host of so many nodes.
pub(crate) fn regions(width: u16, height: u16, nodes: usize) -> Regions {
    let nodes = u16::try_from(nodes).unwrap_or(u16::MAX);
    // The processes are what the screen is for: the nodes get a fifth of it.
    let most = (height / 5).max(2);
    let lines = |form: NodeForm| nodes.div_ceil((width / form.width()).max(1));
    let form = NodeForm::ALL
        .into_iter()
        .find(|form| form.width() <= width && lines(*form) <= most)
        .unwrap_or(NodeForm::Numbers);
    let strip_title = height >= 20 || form == NodeForm::Numbers;
    let strip = lines(form).min(most);
    let header = 2;
    let sentence = match (width, height) {
        (_, ..14) => 0,
        (_, ..20) | (140.., _) => 2,
        _ => 3,
    };
    // The table's title, the column titles, and the keys.
    let fixed = header + strip + u16::from(strip_title) + sentence + 3;
    Regions {
        header,
        strip,
        strip_title,
        form,
        nodes_per_line: (width / form.width()).max(1),
        rows: height.saturating_sub(fixed),
        sentence,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_processes_are_left_at_every_size() {
        for width in [60, 80, 100, 160, 400, u16::MAX] {
            for height in [12, 15, 24, 50, u16::MAX] {
                for nodes in [0, 1, 2, 4, 8, 16, 64, usize::MAX] {
                    let r = regions(width, height, nodes);
                    assert!(r.rows >= 2, "{width}x{height}, {nodes} nodes: {r:?}");
                }
            }
        }
    }

    #[test]
    fn forms_shrink_as_nodes_grow() {
        for (width, height, nodes, want) in [
            (80, 24, 2, NodeForm::Bars),
            (80, 24, 8, NodeForm::Words),
            (80, 24, 16, NodeForm::Numbers),
            (60, 15, 2, NodeForm::Bars),
            (160, 50, 2, NodeForm::Wide),
            (160, 50, 16, NodeForm::Bars),
        ] {
            let form = regions(width, height, nodes).form;
            assert_eq!(form, want, "{width}x{height}, {nodes} nodes");
        }
    }
}
