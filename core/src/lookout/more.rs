//! What is looked for again after a full page. Decides how many free places are worth a look.

use alloc::vec::Vec;
use core::time::Duration;

use super::{Kind, Lookout, Order, PAGE};
use crate::{store::Look, time::Mono};

/// After a full page the next look waits this long at most for places that come free: one row costs
/// the store about as much as a page.
pub(super) const LINGER: Duration = Duration::from_millis(10);

/// This part of all slots is worth a look at once.
const WORTH_A_LOOK: u32 = 4;

impl Lookout {
    /// Whether more of a kind is waiting, and places for it are free or were waited for.
    pub(super) fn is_time_for_more(&self, kind: Kind, now: Mono) -> bool {
        let enough = (self.total / WORTH_A_LOOK).clamp(1, PAGE);
        let spare = self.spare();
        let by = self.more.get(&kind);
        by.is_some_and(|by| spare >= enough || (spare > 0 && *by <= now)) && !self.is_open(kind)
    }

    /// What filled a page of the safety net, and that alone.
    pub(super) fn sweep_more(&mut self, now: Mono, out: &mut Vec<Order>) {
        let by = self.timing.overdue_after;
        let kinds = [
            (Kind::Orphans, Look::Orphans),
            (Kind::Overdue, Look::Overdue { by }),
        ];
        for (kind, rows) in kinds {
            if self.is_time_for_more(kind, now) {
                self.more.remove(&kind);
                let limit = self.sweep_limit();
                if limit > 0 {
                    self.look(kind, rows, limit, out);
                }
            }
        }
    }
}
