//! What of one thread another one knows after barriers, fences and atomics.

use super::*;

const RELAXED: Ordering = Ordering { acquires: false, releases: false, scope: Scope::Device, of: Of::All };
const ACQUIRE: Ordering = Ordering { acquires: true, ..RELAXED };
const RELEASE: Ordering = Ordering { releases: true, ..RELAXED };

fn pair() -> (Clock, Clock) {
    let mut clocks = Clock::of_block(0, 2);
    let second = clocks.pop().unwrap();
    (clocks.pop().unwrap(), second)
}

#[test]
fn only_what_was_handed_on_is_known() {
    let (mut a, mut b) = pair();
    let before = a.moment();
    assert!(!b.knows(before));
    let snapshot = a.release(Scope::Block);
    let after = a.moment();
    b.acquire(&snapshot, Of::All);
    assert!(b.knows(before) && !b.knows(after) && !a.knows(b.moment()));
}

#[test]
fn knowledge_is_passed_along() {
    let mut clocks = Clock::of_block(0, 3);
    let first = clocks[0].moment();
    let snapshot = clocks[0].release(Scope::Block);
    clocks[1].acquire(&snapshot, Of::All);
    let snapshot = clocks[1].release(Scope::Block);
    clocks[2].acquire(&snapshot, Of::All);
    assert!(clocks[2].knows(first));
}

#[test]
fn a_barrier_joins_whatever_was_known_before() {
    let mut clocks = Clock::of_block(0, 4);
    for round in 0..3 {
        let before: Vec<Moment> = clocks.iter().map(Clock::moment).collect();
        // In the second round thread 3 stays away.
        let present = if round == 1 { 3 } else { 4 };
        let snapshots: Vec<_> =
            clocks[..present].iter_mut().map(|clock| clock.release(Scope::Block)).collect();
        let joined = Joined::of(&snapshots).unwrap();
        clocks[..present].iter_mut().for_each(|clock| clock.absorb(&joined));
        for (i, clock) in clocks.iter().enumerate() {
            for (j, &moment) in before.iter().enumerate() {
                assert_eq!(clock.knows(moment), i == j || (i < present && j < present), "{round} {i} {j}");
            }
        }
    }
}

#[test]
fn fences_lend_their_order_to_relaxed_accesses() {
    let (mut a, mut b) = pair();
    let before = a.moment();
    a.fence(RELEASE);
    let published = a.published(RELAXED).unwrap();
    b.observe(&published, RELAXED);
    assert!(!b.knows(before));
    b.fence(ACQUIRE);
    assert!(b.knows(before));
}

#[test]
fn a_scope_reaches_no_further() {
    let (mut a, mut b) = pair();
    let mut other = Clock::of_block(1, 2).remove(0);
    let before = a.moment();
    let block = a.published(Ordering { scope: Scope::Block, ..RELEASE }).unwrap();
    other.observe(&block, ACQUIRE);
    assert!(!other.knows(before));
    b.observe(&block, ACQUIRE);
    assert!(b.knows(before));
    let device = a.published(RELEASE).unwrap();
    other.observe(&device, Ordering { scope: Scope::Block, ..ACQUIRE });
    assert!(!other.knows(before));
    other.observe(&device, ACQUIRE);
    assert!(other.knows(before));
}

#[test]
fn blocks_of_a_cluster_reach_each_other_at_its_scope() {
    let mut clocks = Clock::of_cluster(2, Shape { blocks: 2, threads: 2 });
    let mut other = clocks.pop().unwrap();
    let mut own = clocks.remove(0);
    assert_eq!((own.moment().block, other.moment().block, other.moment().thread), (2, 3, 1));
    let before = own.moment();
    let release = |scope| Ordering { scope, ..RELEASE };
    let acquire = |scope| Ordering { scope, ..ACQUIRE };
    let block = own.published(release(Scope::Block)).unwrap();
    other.observe(&block, acquire(Scope::Device));
    let cluster = own.published(release(Scope::Cluster)).unwrap();
    other.observe(&cluster, acquire(Scope::Block));
    assert!(!other.knows(before));
    // To the next cluster the cluster's scope is too small.
    let mut far = Clock::of_cluster(4, Shape { blocks: 2, threads: 2 }).remove(0);
    far.observe(&cluster, acquire(Scope::Device));
    assert!(!far.knows(before));
    other.observe(&cluster, acquire(Scope::Cluster));
    assert!(other.knows(before) && !other.knows(own.moment()));
    let device = other.published(release(Scope::Device)).unwrap();
    far.observe(&device, acquire(Scope::Device));
    assert!(far.knows(before), "what one block of a cluster hands on the other may have done");
}

#[test]
fn what_has_ended_is_told_without_an_order_of_threads() {
    let mut clocks = Clock::of_cluster(0, Shape { blocks: 2, threads: 1 });
    let (mut other, mut own) = (clocks.pop().unwrap(), clocks.pop().unwrap());
    let copied = Moment::of_agent(1, 3, NonZeroU32::MIN);
    let before = own.moment();
    own.learn(copied);
    let mut ended = Ended::default();
    ended.merge(&own.ended());
    other.learn_ended(&ended);
    assert!(other.knows(copied) && !other.knows(before));
}

#[test]
fn agents_are_known_by_whoever_waited() {
    let (mut a, b) = pair();
    let time = |n| NonZeroU32::new(n).unwrap();
    let (first, second) = (Moment::of_agent(0, 3, time(1)), Moment::of_agent(0, 3, time(2)));
    a.learn(first);
    assert!(a.knows(first) && !a.knows(second) && !b.knows(first));
    let mut other = Clock::of_block(5, 1).remove(0);
    other.observe(&a.published(RELEASE).unwrap(), ACQUIRE);
    assert!(other.knows(first) && !other.knows(second));
}

const SHARED: Ordering = Ordering { of: Of::Shared, ..RELAXED };

/// Whether accesses at a moment are known of to shared memory, and to tensors.
fn known(clock: &Clock, moment: Moment) -> [bool; 2] {
    [Of::Shared, Of::All].map(|of| clock.knows_of(moment, of))
}

#[test]
fn a_fence_of_shared_memory_hands_on_no_more() {
    let mut clocks = Clock::of_block(0, 3);
    let before = clocks[0].moment();
    clocks[0].fence(Ordering { releases: true, ..SHARED });
    let snapshot = clocks[0].published(RELAXED).unwrap();
    clocks[1].observe(&snapshot, RELAXED);
    clocks[1].fence(ACQUIRE);
    assert_eq!(known(&clocks[1], before), [true, false]);
    // Nor does who knows no more, though it orders all that it knows.
    let own = clocks[1].moment();
    let snapshot = clocks[1].release(Scope::Block);
    clocks[2].acquire(&snapshot, Of::All);
    assert_eq!((known(&clocks[2], before), known(&clocks[2], own)), ([true, false], [true; 2]));
    // What is handed on of all memory later adds to both.
    let snapshot = clocks[0].release(Scope::Block);
    clocks[2].acquire(&snapshot, Of::All);
    assert_eq!(known(&clocks[2], before), [true; 2]);
}

#[test]
fn threads_at_one_barrier_may_hand_on_different_memory() {
    let mut clocks = Clock::of_block(0, 3);
    let before: Vec<Moment> = clocks.iter().map(Clock::moment).collect();
    clocks[0].fence(RELEASE);
    clocks[1].fence(Ordering { releases: true, ..SHARED });
    let snapshots: Vec<_> = clocks.iter().filter_map(|clock| clock.last_fence(Scope::Block)).collect();
    let joined = Joined::of(&snapshots).unwrap();
    clocks.iter_mut().for_each(|clock| clock.bring(&joined, Scope::Block));
    clocks[2].fence(Ordering { acquires: true, ..SHARED });
    assert_eq!([0, 1].map(|i| known(&clocks[2], before[i])), [[true, false]; 2]);
    clocks[2].fence(ACQUIRE);
    assert_eq!([0, 1].map(|i| known(&clocks[2], before[i])), [[true; 2], [true, false]]);
}
