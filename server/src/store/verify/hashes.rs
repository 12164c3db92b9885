//! Checks contents against the stored hashes.

use futures::TryStreamExt;
use sqlx::sqlite::SqliteConnection;

use super::VerifyReport;
use crate::store::StoreError;
use crate::store::hashes::{HASHED, Hashed};

/// Verifies all rows with a hash and counts all other rows.
pub(super) async fn verify(connection: &mut SqliteConnection, report: &mut VerifyReport) {
    let mut checked = 0;
    for hashed in &HASHED {
        match check(hashed, connection, report).await {
            Ok(count) => checked += count,
            Err(error) => report.fault(hashed.table, error.to_string()),
        }
    }
    report.checked.push(("hashes", checked));
}

async fn check(
    hashed: &Hashed,
    connection: &mut SqliteConnection,
    report: &mut VerifyReport,
) -> Result<u64, StoreError> {
    let select = format!("{} WHERE {}", hashed.select(), hashed.condition);
    let mut rows = sqlx::query(sqlx::AssertSqlSafe(select)).fetch(connection);
    let mut count = 0;
    while let Some(row) = rows.try_next().await? {
        let Some(stored) = hashed.stored(&row)? else {
            report.unhashed += 1;
            continue;
        };
        count += 1;
        if hashed.computed(&row)?.0 != stored {
            report.fault(hashed.describe(&hashed.key_values(&row)?), "its bytes are not those that were stored");
        }
    }
    Ok(count)
}
