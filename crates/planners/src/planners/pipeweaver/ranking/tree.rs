//! Search tree: a node per explored prefix (PipeWeaver Alg. 1).

use super::space::Space;

/// Exponent for the score. It separates good schedules, whose scores are close to 1.
const ALPHA: f64 = 24.0;
/// Exploration weight.
const BETA: f64 = 0.06;

#[derive(Debug, Clone)]
struct Node {
    parent: u32,
    group: u32,
    visits: u32,
    /// Maximum score in the subtree.
    score: f64,
    children: Vec<u32>,
    /// Continuations that have no node yet, the guide's choice at the end. `None` before the node
    /// is visited.
    untried: Option<Vec<u32>>,
    /// True if the subtree is completely explored.
    is_done: bool,
}

/// Nodes by index. The root is node 0.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
}

impl Tree {
    pub(crate) fn new() -> Self {
        Self { nodes: vec![Node::leaf(u32::MAX, u32::MAX)] }
    }

    /// Returns whether all rankings are explored.
    pub(crate) fn is_done(&self) -> bool {
        self.nodes[0].is_done
    }

    /// Descends to a new node and returns it together with its prefix. Returns `None` if the tree
    /// is completely explored. The path counts as visited immediately.
    pub(crate) fn pick(&mut self, space: &Space, guide: &[u32]) -> Option<(usize, Vec<u32>)> {
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
                // If the prefix follows the guide, begin with the guide's continuation.
                let guided = if guide.starts_with(&prefix) { guide.get(prefix.len()) } else { None };
                if let Some(index) = guided.and_then(|next| untried.iter().position(|group| group == next)) {
                    let last = untried.len() - 1;
                    untried[index..=last].rotate_left(1);
                }
                self.nodes[at].untried = Some(untried);
            }
            // Limit the children to the square root of the visits, which prefers depth over
            // breadth.
            let node = &self.nodes[at];
            let has_capacity = node.children.len() * node.children.len() <= node.visits as usize;
            let fresh = if has_capacity || node.children.iter().all(|&child| self.nodes[child as usize].is_done) {
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
                // All children are explored or currently evaluated.
                self.close(at);
                return if self.is_done() { None } else { self.pick(space, guide) };
            };
            prefix.push(self.nodes[child].group);
            at = child;
        }
    }

    /// Returns the child that has the maximum upper confidence bound (UCB) among unfinished
    /// children (PipeWeaver Alg. 1, line 4).
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

    /// Propagates a score to the root (PipeWeaver Alg. 1, lines 14 to 17).
    pub(crate) fn carry(&mut self, mut at: usize, score: f64) {
        loop {
            let node = &mut self.nodes[at];
            node.score = node.score.max(score);
            if node.parent == u32::MAX {
                return;
            }
            at = node.parent as usize;
        }
    }

    /// Marks a node as explored, then all ancestors that have only explored children.
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
