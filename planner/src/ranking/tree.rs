//! The search tree: one node for every prefix that has been looked at.

use super::space::Space;

/// Weight of the score's growth: scores of good schedules lie close together near one.
const ALPHA: f64 = 24.0;
/// Weight of exploration.
const BETA: f64 = 0.06;

#[derive(Debug, Clone)]
struct Node {
    parent: u32,
    group: u32,
    visits: u32,
    /// Best score below.
    score: f64,
    children: Vec<u32>,
    /// Continuations that have no node yet, the guide's choice last; `None` before the first look.
    untried: Option<Vec<u32>>,
    /// Nothing below is left to see.
    is_done: bool,
}

/// Nodes by number; the root is 0.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    nodes: Vec<Node>,
}

impl Tree {
    pub(super) fn new() -> Self {
        Self { nodes: vec![Node::leaf(u32::MAX, u32::MAX)] }
    }

    /// Whether every ranking has been seen.
    pub(super) fn is_done(&self) -> bool {
        self.nodes[0].is_done
    }

    /// Descends to a new node and returns it with its prefix; `None` where nothing is left to see. The path counts
    /// as visited at once.
    pub(super) fn pick(&mut self, space: &Space, guide: &[u32]) -> Option<(usize, Vec<u32>)> {
        if self.is_done() {
            return None;
        }
        let mut prefix = Vec::new();
        let mut at = 0;
        loop {
            self.nodes[at].visits += 1;
            if prefix.len() == space.len() {
                return Some((at, prefix));
            }
            if self.nodes[at].untried.is_none() {
                let mut untried = space.continuations(&prefix);
                // The guide's own choice is tried first, if the prefix is the guide's.
                let choice = if guide.starts_with(&prefix) { guide.get(prefix.len()) } else { None };
                if let Some(place) = choice.and_then(|choice| untried.iter().position(|group| group == choice)) {
                    let last = untried.len() - 1;
                    untried[place..=last].rotate_left(1);
                }
                self.nodes[at].untried = Some(untried);
            }
            // A node may have as many children as the square root of its visits: depth before breadth.
            let node = &self.nodes[at];
            let room = node.children.len() * node.children.len() <= node.visits as usize;
            let fresh = if room || node.children.iter().all(|&child| self.nodes[child as usize].is_done) {
                self.nodes[at].untried.as_mut().and_then(Vec::pop)
            } else {
                None
            };
            if let Some(group) = fresh {
                let child = self.nodes.len();
                self.nodes.push(Node { visits: 1, ..Node::leaf(at as u32, group) });
                self.nodes[at].children.push(child as u32);
                prefix.push(group);
                if prefix.len() == space.len() {
                    self.close(child);
                }
                return Some((child, prefix));
            }
            let Some(child) = self.preferred(at) else {
                // Everything below has been seen or is being looked at.
                self.close(at);
                return if self.is_done() { None } else { self.pick(space, guide) };
            };
            prefix.push(self.nodes[child].group);
            at = child;
        }
    }

    /// The child with the largest upper confidence bound among those with something left to see.
    fn preferred(&self, at: usize) -> Option<usize> {
        let visits = libm::log(f64::from(self.nodes[at].visits));
        let bound = |child: usize| {
            let node = &self.nodes[child];
            libm::pow(node.score, ALPHA) + BETA * (visits / f64::from(node.visits)).sqrt()
        };
        let open =
            self.nodes[at].children.iter().map(|&child| child as usize).filter(|&child| !self.nodes[child].is_done);
        open.max_by(|&a, &b| bound(a).total_cmp(&bound(b)).then(b.cmp(&a)))
    }

    /// Carries a score up.
    pub(super) fn carry(&mut self, mut at: usize, score: f64) {
        loop {
            let node = &mut self.nodes[at];
            node.score = node.score.max(score);
            if node.parent == u32::MAX {
                return;
            }
            at = node.parent as usize;
        }
    }

    /// Nothing is left to see at a node, and perhaps above it.
    fn close(&mut self, mut at: usize) {
        loop {
            self.nodes[at].is_done = true;
            let parent = self.nodes[at].parent;
            if parent == u32::MAX {
                return;
            }
            at = parent as usize;
            let node = &self.nodes[at];
            let open = node.untried.as_ref().is_none_or(|untried| !untried.is_empty());
            if open || node.children.iter().any(|&child| !self.nodes[child as usize].is_done) {
                return;
            }
        }
    }
}

impl Node {
    const fn leaf(parent: u32, group: u32) -> Self {
        Self { parent, group, visits: 0, score: 0.0, children: Vec::new(), untried: None, is_done: false }
    }
}
