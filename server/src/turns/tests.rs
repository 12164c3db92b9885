use std::time::Duration;

use tokio::task::JoinHandle;

use super::*;

const MIB: u64 = 1 << 20;

fn ask(turns: &Turns, name: &str, bytes: u64) -> JoinHandle<Turn> {
    let (turns, name) = (turns.clone(), Claimant::named(name));
    tokio::spawn(async move { turns.take(&name, Demand::turn(bytes)).await })
}

/// Runs all tasks until they block.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

async fn waiting_turns(turns: &Turns, requests: &[(&str, u64)]) -> Vec<JoinHandle<Turn>> {
    let mut all = Vec::new();
    for (name, bytes) in requests {
        all.push(ask(turns, name, *bytes));
        settle().await;
    }
    all
}

fn begun(all: &[JoinHandle<Turn>]) -> Vec<bool> {
    all.iter().map(JoinHandle::is_finished).collect()
}

#[tokio::test]
async fn frequent_client_waits_behind_others() {
    let turns = Turns::new(2, 100 * MIB);
    let all = waiting_turns(&turns, &[("a", 1), ("a", 1), ("a", 1), ("a", 1), ("b", 1), ("c", 1)]).await;
    assert_eq!(begun(&all), [true, true, false, false, false, false]);
    let mut all = all.into_iter();
    let (first, second) = (all.next().unwrap().await.unwrap(), all.next().unwrap().await.unwrap());
    let all: Vec<_> = all.collect();
    drop(first);
    settle().await;
    // Client a has an active computation; b precedes c in the queue.
    assert_eq!(begun(&all), [false, false, true, false]);
    drop(second);
    settle().await;
    assert_eq!(begun(&all), [false, false, true, true]);
}

#[tokio::test]
async fn all_computations_together_stay_within_the_memory() {
    let turns = Turns::new(4, 100 * MIB);
    let all = waiting_turns(&turns, &[("a", 60 * MIB), ("b", 60 * MIB), ("c", 40 * MIB), ("d", 500 * MIB)]).await;
    assert_eq!(begun(&all), [true, false, true, false]);
    let mut all = all.into_iter();
    let first = all.next().unwrap().await.unwrap();
    assert_eq!(first.bytes(), 60 * MIB);
    drop(first);
    let all: Vec<_> = all.collect();
    settle().await;
    assert_eq!(begun(&all), [true, true, false]);
    let mut all = all.into_iter();
    drop((all.next().unwrap().await.unwrap(), all.next().unwrap().await.unwrap()));
    // A demand beyond the total receives the total.
    assert_eq!(all.next().unwrap().await.unwrap().bytes(), 100 * MIB);
}

#[tokio::test]
async fn large_computation_is_passed_eight_times() {
    let turns = Turns::new(2, 100 * MIB);
    let holder = turns.take(&Claimant::named("holder"), Demand::turn(10 * MIB)).await;
    let large = ask(&turns, "large", 100 * MIB);
    settle().await;
    for number in 0..8 {
        let small = ask(&turns, &format!("small {number}"), MIB);
        settle().await;
        assert!(small.is_finished(), "{number}");
        drop(small.await.unwrap());
    }
    let ninth = ask(&turns, "small 8", MIB);
    settle().await;
    assert!(!ninth.is_finished());
    drop(holder);
    drop(large.await.unwrap());
    drop(ninth.await.unwrap());
}

#[tokio::test]
async fn dropped_request_leaves_the_queue_and_releases_its_turn() {
    let turns = Turns::new(1, 100 * MIB);
    let first = turns.take(&Claimant::named("a"), Demand::turn(100 * MIB)).await;
    let gone = ask(&turns, "b", MIB);
    settle().await;
    assert!(turns.take_free(&Claimant::server(), Demand::memory(0)).is_none(), "somebody waits");
    gone.abort();
    settle().await;
    drop(first);
    let free = turns.take_free(&Claimant::server(), Demand::turn(100 * MIB));
    assert!(free.is_some());
    let next = ask(&turns, "c", MIB);
    settle().await;
    drop(free);
    assert!(tokio::time::timeout(Duration::from_mins(1), next).await.is_ok());
}
