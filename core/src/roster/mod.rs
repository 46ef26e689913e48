//! Who is here: sessions of members at a coordinator, the same for a master and for a slave.
//!
//! Joining has two phases: `register` hands out a nonce that the coordinator publishes on the
//! member's own subject, `confirm` brings it back, so a member that can't hear is not in. *Twins:*
//! while the holder of an id is alive within its session, a newcomer with the same id waits;
//! afterwards it may have the id, and the one that it replaced is told so when it comes back.
//! The roster refuses to know what a member is for (that is `T`) and publishes nothing.

use alloc::{collections::BTreeMap, string::String, vec::Vec};
use core::time::Duration;

use crate::{
    id::{BootId, NodeId, Nonce},
    time::Mono,
    window::WindowNo,
    wire::{Refusal, Who},
};

/// How many, how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most members; more are refused as `Busy`.
    pub members: usize,
    /// Most newcomers between their two phases: a storm of registrations is let in by portions,
    /// so that members' heartbeats are answered meanwhile. A portion takes one round trip.
    pub newcomers: usize,
    /// A member unheard this long is gone.
    pub session: Duration,
}

/// One member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member<T> {
    /// Its boot.
    pub boot: BootId,
    /// Version of its program.
    pub build: String,
    /// When it was last heard.
    pub heard: Mono,
    /// Its clock less the coordinator's, in milliseconds, by its last heartbeat.
    pub offset_ms: i64,
    /// The last window that it still serves, when it is about to leave.
    pub leaves_after: Option<WindowNo>,
    /// What it is for.
    pub role: T,
}

/// The members of one coordinator. Everything in it is bounded by [`Limits`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roster<T> {
    limits: Limits,
    members: BTreeMap<NodeId, Member<T>>,
    newcomers: BTreeMap<Who, Newcomer<T>>,
    /// Boots that lost their id to another one, with the moment; at most `limits.members`.
    replaced: BTreeMap<Who, Mono>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Newcomer<T> {
    nonce: Nonce,
    since: Mono,
    build: String,
    role: T,
}

/// What follows from a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registered {
    /// Publish this nonce on the newcomer's own subject. A repeat gets the nonce it had.
    Probe(Nonce),
    /// No.
    Refused(No),
}

/// What follows from a confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirmed {
    /// It is a member from now on.
    Joined,
    /// It was one already: a repeat.
    Again,
    /// No.
    Refused(No),
}

/// What follows from a leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Left<T> {
    /// It is out.
    Now(Member<T>),
    /// It goes after the window that it named.
    Later,
    /// It was no member in this boot: a repeat.
    Unknown,
}

/// A refusal with the time to wait before asking again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct No {
    /// Why.
    pub reason: Refusal,
    /// When to ask again.
    pub retry_after: Duration,
}

impl<T> Roster<T> {
    /// Nobody yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            members: BTreeMap::new(),
            newcomers: BTreeMap::new(),
            replaced: BTreeMap::new(),
        }
    }

    /// First phase. Idempotent: a repeat gets its nonce again, a member may prove anew that it
    /// hears.
    pub fn register(
        &mut self,
        now: Mono,
        who: &Who,
        build: &str,
        role: T,
        chance: Nonce,
    ) -> Registered {
        if let Some(no) = self.bars(now, who) {
            return Registered::Refused(no);
        }
        self.forget_newcomers(now);
        let known = self.newcomers.contains_key(who);
        let seats = self.members.contains_key(&who.id) || self.has_room();
        if !known && (self.newcomers.len() >= self.limits.newcomers || !seats) {
            return Registered::Refused(self.no(Refusal::Busy));
        }
        let newcomer = self.newcomers.entry(who.clone()).or_insert(Newcomer {
            nonce: chance,
            since: now,
            build: String::new(),
            role,
        });
        newcomer.since = now;
        newcomer.build = build.chars().take(80).collect();
        Registered::Probe(newcomer.nonce)
    }

    /// Second phase: the nonce came back. A wrong or forgotten nonce means: register again.
    pub fn confirm(&mut self, now: Mono, who: &Who, nonce: Nonce) -> Confirmed {
        if let Some(no) = self.bars(now, who) {
            return Confirmed::Refused(no);
        }
        self.forget_newcomers(now);
        let member = self.members.get(&who.id).map(|m| m.boot);
        let proved = self.newcomers.get(who).is_some_and(|n| n.nonce == nonce);
        match (member == Some(who.boot), proved) {
            (true, _) => {
                self.newcomers.remove(who);
                if let Some(member) = self.members.get_mut(&who.id) {
                    member.heard = now;
                }
                Confirmed::Again
            }
            (false, false) => Confirmed::Refused(self.no(Refusal::Unregistered)),
            (false, true) if member.is_none() && !self.has_room() => {
                Confirmed::Refused(self.no(Refusal::Busy))
            }
            (false, true) => {
                if let Some(newcomer) = self.newcomers.remove(who) {
                    self.seat(now, who, newcomer.build, newcomer.role);
                }
                Confirmed::Joined
            }
        }
    }

    /// A heartbeat; the caller notes what it told in the member.
    ///
    /// # Errors
    /// The refusal for a boot that is no member: only members send heartbeats, so an older boot
    /// than a live holder's has lost its id ([`Refusal::Superseded`]); others register again.
    pub fn beat(&mut self, now: Mono, who: &Who) -> Result<&mut Member<T>, No> {
        let no = self.no(self.refusal(now, who));
        match self.members.get_mut(&who.id) {
            Some(member) if member.boot == who.boot => {
                member.heard = now;
                Ok(member)
            }
            Some(_) | None => Err(no),
        }
    }

    /// A heartbeat to somebody else was overheard: its sender is a member there, so it is treated
    /// as one here. Of two live boots the newer one counts. `None` when there is no room, or when
    /// the sender is the older one.
    pub fn presume(&mut self, now: Mono, who: &Who, role: T) -> Option<&mut Member<T>> {
        let holder = self.members.get(&who.id);
        let known = holder.is_some_and(|m| m.boot == who.boot);
        if !known {
            let yields = holder.is_none_or(|m| m.boot < who.boot || !self.is_live(now, m));
            let room = holder.is_some() || self.has_room();
            if !yields || !room || self.replaced.contains_key(who) {
                return None;
            }
            self.seat(now, who, String::new(), role);
        }
        let member = self.members.get_mut(&who.id)?;
        member.heard = now;
        Some(member)
    }

    /// The member goes, at once or after a window.
    pub fn leave(&mut self, who: &Who, after: Option<WindowNo>) -> Left<T> {
        self.newcomers.remove(who);
        match self.members.get_mut(&who.id) {
            Some(member) if member.boot == who.boot => match after {
                Some(window) => {
                    member.leaves_after = Some(window);
                    Left::Later
                }
                None => self
                    .members
                    .remove(&who.id)
                    .map_or(Left::Unknown, Left::Now),
            },
            Some(_) | None => Left::Unknown,
        }
    }

    /// Takes out those whose session is over, and forgets newcomers that never confirmed.
    pub fn expire(&mut self, now: Mono) -> Vec<(NodeId, Member<T>)> {
        self.forget_newcomers(now);
        let session = self.limits.session;
        self.members
            .extract_if(.., |_, member| now.since(member.heard) >= session)
            .collect()
    }

    /// Takes out those who said that they leave after a window before this one.
    pub fn depart(&mut self, current: WindowNo) -> Vec<(NodeId, Member<T>)> {
        self.members
            .extract_if(.., |_, member| {
                member.leaves_after.is_some_and(|last| last < current)
            })
            .collect()
    }

    /// When the next session ends unless its member is heard.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Mono> {
        let heard = self.members.values().map(|m| m.heard).min()?;
        Some(heard.plus(self.limits.session))
    }

    /// Gives every session its full length from now on: for a coordinator that could not hear
    /// anybody for a while, such as one that was suspended or disconnected.
    pub fn renew_all(&mut self, now: Mono) {
        for member in self.members.values_mut() {
            member.heard = now;
        }
    }

    /// The member with this id.
    #[must_use]
    pub fn get(&self, id: &NodeId) -> Option<&Member<T>> {
        self.members.get(id)
    }

    /// The member with this id, to note something about it.
    pub fn get_mut(&mut self, id: &NodeId) -> Option<&mut Member<T>> {
        self.members.get_mut(id)
    }

    /// The member in exactly this boot.
    #[must_use]
    pub fn member(&self, who: &Who) -> Option<&Member<T>> {
        self.members.get(&who.id).filter(|m| m.boot == who.boot)
    }

    /// All members in order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (&NodeId, &Member<T>)> {
        self.members.iter()
    }

    /// Changes every member.
    pub fn each(&mut self, mut change: impl FnMut(&mut Member<T>)) {
        self.members.values_mut().for_each(&mut change);
    }

    /// How many members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether nobody is here.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    fn has_room(&self) -> bool {
        self.members.len() < self.limits.members
    }

    fn is_live(&self, now: Mono, member: &Member<T>) -> bool {
        now.since(member.heard) < self.limits.session
    }

    /// Why this boot may not take its id now. A boot never seen waits even if it is older than
    /// the holder: a machine whose clock is behind also makes older boots.
    fn bars(&self, now: Mono, who: &Who) -> Option<No> {
        if self.replaced.contains_key(who) {
            return Some(self.no(Refusal::Superseded));
        }
        let holder = self.members.get(&who.id)?;
        (holder.boot != who.boot && self.is_live(now, holder)).then(|| No {
            reason: Refusal::TwinAlive,
            retry_after: self.limits.session.saturating_sub(now.since(holder.heard)),
        })
    }

    fn refusal(&self, now: Mono, who: &Who) -> Refusal {
        let newer_lives = self
            .members
            .get(&who.id)
            .is_some_and(|m| m.boot > who.boot && self.is_live(now, m));
        if newer_lives || self.replaced.contains_key(who) {
            Refusal::Superseded
        } else {
            Refusal::Unregistered
        }
    }

    fn no(&self, reason: Refusal) -> No {
        // A third of a session: the next attempt comes well before anybody is given up.
        let retry_after = self.limits.session / 3;
        No {
            reason,
            retry_after,
        }
    }

    fn seat(&mut self, now: Mono, who: &Who, build: String, role: T) {
        let member = Member {
            boot: who.boot,
            build,
            heard: now,
            offset_ms: 0,
            leaves_after: None,
            role,
        };
        let Some(before) = self.members.insert(who.id.clone(), member) else {
            return;
        };
        if self.replaced.len() >= self.limits.members {
            let oldest = self.replaced.iter().min_by_key(|(_, at)| **at);
            if let Some(oldest) = oldest.map(|(who, _)| who.clone()) {
                self.replaced.remove(&oldest);
            }
        }
        let loser = Who {
            id: who.id.clone(),
            boot: before.boot,
        };
        self.replaced.insert(loser, now);
    }

    /// A newcomer has a session's time between its two phases.
    fn forget_newcomers(&mut self, now: Mono) {
        let session = self.limits.session;
        self.newcomers.retain(|_, n| now.since(n.since) < session);
    }
}

#[cfg(test)]
mod tests;
