//! Sessions, two phases, twins.

use alloc::vec;

use uuid::Uuid;

use super::*;

const SESSION: Duration = Duration::from_secs(15);
const LIMITS: Limits = Limits {
    members: 2,
    newcomers: 2,
    session: SESSION,
};

fn who(id: &str, boot: u128) -> Who {
    Who {
        id: NodeId::new(id).unwrap(),
        boot: BootId(Uuid::from_u128(boot)),
    }
}

fn nonce(n: u128) -> Nonce {
    Nonce(Uuid::from_u128(n))
}

fn at(seconds: u64) -> Mono {
    Mono(seconds * 1000)
}

fn join(roster: &mut Roster<u8>, now: Mono, who: &Who) -> Confirmed {
    let Registered::Probe(nonce) = roster.register(now, who, "1", 0, nonce(7)) else {
        panic!("{who:?} is refused")
    };
    roster.confirm(now, who, nonce)
}

fn registering(roster: &mut Roster<u8>, now: Mono, who: &Who) -> Option<Refusal> {
    match roster.register(now, who, "1", 0, nonce(7)) {
        Registered::Probe(_) => None,
        Registered::Refused(no) => Some(no.reason),
    }
}

fn beating(roster: &mut Roster<u8>, now: Mono, who: &Who) -> Option<Refusal> {
    roster.beat(now, who).err().map(|no| no.reason)
}

#[test]
fn only_who_confirms_the_nonce_is_a_member() {
    let mut roster = Roster::<u8>::new(LIMITS);
    let a = who("a", 1);
    assert_eq!(registering(&mut roster, at(0), &a), None);
    assert!(roster.is_empty());
    let wrong = roster.confirm(at(0), &a, nonce(8));
    assert!(matches!(
        wrong,
        Confirmed::Refused(No {
            reason: Refusal::Unregistered,
            ..
        })
    ));
    assert_eq!(beating(&mut roster, at(0), &a), Some(Refusal::Unregistered));
    assert_eq!(roster.confirm(at(0), &a, nonce(7)), Confirmed::Joined);
    assert_eq!(beating(&mut roster, at(0), &a), None);
}

#[test]
fn repeats_of_both_phases_are_harmless() {
    let mut roster = Roster::<u8>::new(LIMITS);
    let a = who("a", 1);
    let first = roster.register(at(0), &a, "1", 0, nonce(7));
    let again = roster.register(at(1), &a, "1", 0, nonce(9));
    assert_eq!(first, again);
    assert_eq!(roster.confirm(at(1), &a, nonce(7)), Confirmed::Joined);
    assert_eq!(roster.confirm(at(2), &a, nonce(7)), Confirmed::Again);
    assert_eq!(registering(&mut roster, at(3), &a), None);
    assert_eq!(roster.confirm(at(3), &a, nonce(7)), Confirmed::Again);
    assert_eq!(roster.len(), 1);
}

#[test]
fn a_twin_waits_while_the_holder_lives_and_has_the_id_afterwards() {
    let mut roster = Roster::<u8>::new(LIMITS);
    let (old, new) = (who("a", 1), who("a", 2));
    assert_eq!(join(&mut roster, at(0), &old), Confirmed::Joined);
    assert_eq!(
        roster.register(at(5), &new, "1", 0, nonce(1)),
        Registered::Refused(No {
            reason: Refusal::TwinAlive,
            retry_after: Duration::from_secs(10)
        })
    );
    assert_eq!(join(&mut roster, at(15), &new), Confirmed::Joined);
    for answer in [
        beating(&mut roster, at(16), &old),
        registering(&mut roster, at(60), &old),
    ] {
        assert_eq!(answer, Some(Refusal::Superseded));
    }
    assert_eq!(beating(&mut roster, at(16), &new), None);
}

#[test]
fn a_restart_with_a_clock_behind_waits_and_is_not_told_superseded() {
    let mut roster = Roster::<u8>::new(LIMITS);
    assert_eq!(join(&mut roster, at(0), &who("a", 9)), Confirmed::Joined);
    let restarted = who("a", 3);
    assert_eq!(
        registering(&mut roster, at(1), &restarted),
        Some(Refusal::TwinAlive)
    );
    assert_eq!(join(&mut roster, at(15), &restarted), Confirmed::Joined);
}

#[test]
fn a_beat_of_an_older_boot_than_a_live_holders_is_told_superseded() {
    let mut roster = Roster::<u8>::new(LIMITS);
    assert_eq!(join(&mut roster, at(0), &who("a", 9)), Confirmed::Joined);
    let older = beating(&mut roster, at(1), &who("a", 3));
    assert_eq!(older, Some(Refusal::Superseded));
    let newer = beating(&mut roster, at(1), &who("a", 12));
    assert_eq!(newer, Some(Refusal::Unregistered));
}

#[test]
fn an_unheard_member_goes_when_its_session_ends() {
    let mut roster = Roster::<u8>::new(LIMITS);
    let (a, b) = (who("a", 1), who("b", 2));
    join(&mut roster, at(0), &a);
    join(&mut roster, at(0), &b);
    assert_eq!(beating(&mut roster, at(10), &b), None);
    assert_eq!(roster.next_expiry(), Some(at(15)));
    assert_eq!(roster.expire(Mono(14_999)), vec![]);
    let gone: Vec<NodeId> = roster.expire(at(15)).into_iter().map(|m| m.0).collect();
    assert_eq!(gone, [a.id]);
    assert!(roster.member(&b).is_some());
}

#[test]
fn a_leave_frees_the_id_at_once_or_after_its_window() {
    let mut roster = Roster::<u8>::new(LIMITS);
    let (a, b) = (who("a", 1), who("b", 2));
    join(&mut roster, at(0), &a);
    join(&mut roster, at(0), &b);
    assert!(matches!(roster.leave(&a, None), Left::Now(_)));
    assert_eq!(roster.leave(&a, None), Left::Unknown);
    assert_eq!(roster.leave(&who("b", 1), None), Left::Unknown);
    assert_eq!(roster.leave(&b, Some(WindowNo(5))), Left::Later);
    assert_eq!(roster.depart(WindowNo(5)), vec![]);
    assert_eq!(roster.depart(WindowNo(6)).len(), 1);
    assert_eq!(join(&mut roster, at(1), &who("a", 3)), Confirmed::Joined);
}

#[test]
fn a_storm_is_let_in_by_portions() {
    let mut roster = Roster::<u8>::new(LIMITS);
    assert_eq!(registering(&mut roster, at(0), &who("a", 1)), None);
    assert_eq!(registering(&mut roster, at(0), &who("b", 1)), None);
    let third = who("c", 1);
    assert_eq!(registering(&mut roster, at(0), &third), Some(Refusal::Busy));
    assert_eq!(
        roster.confirm(at(0), &who("a", 1), nonce(7)),
        Confirmed::Joined
    );
    assert_eq!(registering(&mut roster, at(0), &third), None);
    assert_eq!(
        roster.confirm(at(0), &who("b", 1), nonce(7)),
        Confirmed::Joined
    );
    let full = roster.confirm(at(0), &third, nonce(7));
    assert!(matches!(
        full,
        Confirmed::Refused(No {
            reason: Refusal::Busy,
            ..
        })
    ));
    assert_eq!(roster.len(), LIMITS.members);
}

#[test]
fn an_overheard_member_is_a_member_and_the_newer_boot_counts() {
    let mut roster = Roster::<u8>::new(LIMITS);
    let (old, new) = (who("a", 1), who("a", 2));
    assert!(roster.presume(at(0), &old, 0).is_some());
    assert_eq!(beating(&mut roster, at(1), &old), None);
    assert!(roster.presume(at(2), &new, 0).is_some());
    assert!(roster.presume(at(3), &old, 0).is_none());
    assert_eq!(beating(&mut roster, at(3), &old), Some(Refusal::Superseded));
    assert!(roster.presume(at(3), &who("b", 1), 0).is_some());
    assert!(roster.presume(at(3), &who("c", 1), 0).is_none());
}

#[test]
fn memory_of_replaced_boots_is_bounded() {
    let mut roster = Roster::<u8>::new(LIMITS);
    for boot in 1..50 {
        let now = at(20 * u64::try_from(boot).unwrap());
        assert_eq!(join(&mut roster, now, &who("a", boot)), Confirmed::Joined);
    }
    assert_eq!(roster.replaced.len(), LIMITS.members);
    let last = registering(&mut roster, at(2000), &who("a", 48));
    assert_eq!(last, Some(Refusal::Superseded));
}
