//! Profiles: measurement files and fitted results.

use api::listing::Annotations;
use api::profile::{FittedPart, PhaseFactor, Profile, ProfileEffect, ProfileList, ProfileSource, ProfileSummary};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::forget::PurgeStatements;
use super::objects::ObjectTable;
use super::{Kind, ListDefinition, Order, Reader, StoreError, Wanted, Writer, hashes};
use crate::clock::rfc3339;

const PROFILE: ObjectTable =
    ObjectTable { kind: Kind::Profile, table: "profile", name: "name", restorable: "content_json IS NOT NULL" };
/// Purges content and files in one transaction.
const FORGETTING: PurgeStatements = PurgeStatements {
    take: "UPDATE profile SET content_json = NULL, base_json = NULL, bytes = 0, sha256 = NULL
         WHERE id = (SELECT id FROM profile WHERE deleted_at_ms < ? AND content_json IS NOT NULL LIMIT 1)
         RETURNING id",
    with_it: &["DELETE FROM profile_file WHERE profile_id = ?"],
};

/// List of profiles.
pub(crate) const PROFILES: ListDefinition = ListDefinition {
    table: "profile",
    text: "name || ' ' || coalesce(note, '') || ' ' || tags_json || ' ' || source_json || ' ' || id",
    tags: "tags_json",
    listed: "1",
    can_return: PROFILE.restorable,
    stored: "SELECT coalesce(sum(bytes), 0) FROM profile",
    deleted: "SELECT coalesce(sum(bytes), 0) FROM profile WHERE deleted_at_ms IS NOT NULL",
    orders: &[
        Order { name: "created", key: "created_at_ms" },
        Order { name: "name", key: "lower(name)" },
        Order { name: "measurements", key: "measurements" },
        // Profiles that lack a residual are sorted last.
        Order { name: "residual", key: "coalesce(residual, 1e300)" },
        Order { name: "size", key: "bytes" },
    ],
};

/// A measurement file as uploaded.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileFile {
    /// File name.
    pub name: String,
    /// Rank count of the group, if specified at upload.
    pub ranks: Option<u32>,
    /// File content.
    pub content: Vec<u8>,
}

/// Result of the fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileContent {
    /// Change to a scenario.
    pub effect: ProfileEffect,
    /// Fitted parts.
    pub parts: Vec<FittedPart>,
    /// Import report as text lines.
    pub report: Vec<String>,
    /// Factors per phase, for profiles from a run.
    #[serde(default)]
    pub factors: Vec<PhaseFactor>,
}

/// A profile to be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct NewProfile {
    /// Content address.
    pub id: String,
    /// Display name.
    pub name: String,
    /// Source of the measurements.
    pub source: ProfileSource,
    /// Number of measurements.
    pub measurements: u64,
    /// Mean relative residual.
    pub residual: Option<f64>,
    /// Inputs of the fit in addition to the files, as JSON.
    pub base: Option<String>,
    /// Result of the fit.
    pub content: ProfileContent,
    /// Measurement files.
    pub files: Vec<ProfileFile>,
}

/// Profile that a new profile replaces.
#[derive(Debug, Clone, Copy, Default)]
pub struct Replaced<'a> {
    /// Profile to delete. It can be restored like any deleted profile.
    pub id: Option<&'a str>,
}

impl Writer {
    /// Stores a profile and returns true if it is new. Existing content is unchanged; a deleted
    /// profile is restored.
    pub async fn store_profile(
        &self,
        profile: &NewProfile,
        replaced: Replaced<'_>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let content = json(&profile.content);
        let files: usize = profile.files.iter().map(|file| file.content.len()).sum();
        let bytes = i64::try_from(content.len() + files).unwrap_or(i64::MAX);
        let mut write = self.begin().await?;
        let known: Option<Option<i64>> = sqlx::query_scalar("SELECT deleted_at_ms FROM profile WHERE id = ?")
            .bind(&profile.id)
            .fetch_optional(&mut *write)
            .await?;
        let is_new = known != Some(None);
        if is_new {
            write.check_capacity(content.len() + files).await?;
            // The tombstone and the files are removed. Tags and note start empty.
            sqlx::query("DELETE FROM profile WHERE id = ?").bind(&profile.id).execute(&mut *write).await?;
            sqlx::query(
                "INSERT INTO profile (id, name, tags_json, source_json, measurements, residual, bytes, created_at_ms,
                                      base_json, sha256, content_json)
                 VALUES (?, ?, '[]', ?, ?, ?, ?, ?, ?, ?, ?)",
            )
            .bind(&profile.id)
            .bind(&profile.name)
            .bind(json(&profile.source))
            .bind(i64::try_from(profile.measurements).unwrap_or(i64::MAX))
            .bind(profile.residual)
            .bind(bytes)
            .bind(now.as_millisecond())
            .bind(profile.base.as_deref())
            .bind(hashes::hash_content(&content))
            .bind(content)
            .execute(&mut *write)
            .await?;
            for (position, file) in (0_i64..).zip(&profile.files) {
                sqlx::query(
                    "INSERT INTO profile_file (profile_id, position, name, ranks, content) VALUES (?, ?, ?, ?, ?)",
                )
                .bind(&profile.id)
                .bind(position)
                .bind(&file.name)
                .bind(file.ranks)
                .bind(&file.content)
                .execute(&mut *write)
                .await?;
            }
        }
        if let Some(old) = replaced.id.filter(|old| *old != profile.id) {
            sqlx::query("UPDATE profile SET deleted_at_ms = ? WHERE id = ? AND deleted_at_ms IS NULL")
                .bind(now.as_millisecond())
                .bind(old)
                .execute(&mut *write)
                .await?;
        }
        write.commit().await?;
        Ok(is_new)
    }

    /// Changes name, note, tags and pin.
    pub async fn change_profile(&self, id: &str, annotations: &Annotations, now: Timestamp) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        PROFILE.change(&mut write, id, annotations, now).await?;
        write.commit().await
    }

    /// Marks a profile as deleted. [`Writer::forget_profiles`] deletes the files.
    pub async fn delete_profile(&self, id: &str, now: Timestamp) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        PROFILE.delete(&mut write, id, now).await?;
        write.commit().await
    }

    /// Restores a deleted profile. Fails if it was purged. An active profile is unchanged.
    pub async fn restore_profile(&self, id: &str) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        PROFILE.restore(&mut write, id, "").await?;
        write.commit().await
    }

    /// Purges profiles deleted before the given time. Each profile is a separate transaction, so
    /// that other writers can run in between. Returns the count.
    pub async fn forget_profiles(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.forget_all(&FORGETTING, before).await
    }
}

/// All columns for the list.
type SummaryRow =
    (String, String, Option<String>, String, String, i64, Option<f64>, i64, i64, Option<i64>, Option<i64>);

const COLUMNS: &str =
    "id, name, note, tags_json, source_json, measurements, residual, created_at_ms, bytes, deleted_at_ms, pinned_at_ms";

impl Reader {
    /// Returns a page of the stored profiles.
    pub(crate) async fn profiles(&self, wanted: &Wanted, retention_days: u32) -> Result<ProfileList, StoreError> {
        let mut found = self.page(&PROFILES, wanted).await?;
        found.page.retention_days = retention_days;
        let query = format!("SELECT {COLUMNS} FROM profile WHERE id IN (SELECT value FROM json_each(?))");
        let rows: Vec<SummaryRow> =
            sqlx::query_as(sqlx::AssertSqlSafe(query)).bind(found.json()).fetch_all(self.pool()).await?;
        let rows = found.in_order(rows, |row| &row.0);
        Ok(ProfileList { profiles: rows.into_iter().map(summary).collect::<Result<_, _>>()?, page: found.page })
    }

    /// Returns a complete profile.
    pub async fn profile(&self, id: &str) -> Result<Profile, StoreError> {
        let query = format!("SELECT {COLUMNS} FROM profile WHERE id = ?");
        let row: SummaryRow = sqlx::query_as(sqlx::AssertSqlSafe(query))
            .bind(id)
            .fetch_optional(self.pool())
            .await?
            .ok_or_else(|| PROFILE.missed(id))?;
        if let Some(at) = row.9 {
            return Err(PROFILE.gone(self.pool(), id, at).await);
        }
        let content: Option<String> =
            sqlx::query_scalar("SELECT content_json FROM profile WHERE id = ?").bind(id).fetch_one(self.pool()).await?;
        let ProfileContent { effect, parts, report, factors } = parse(content.as_deref().unwrap_or_default())?;
        Ok(Profile { summary: summary(row)?, effect, parts, report, factors })
    }

    /// Returns a profile's base, and the files in upload order.
    pub async fn profile_files(&self, id: &str) -> Result<(Option<String>, Vec<ProfileFile>), StoreError> {
        let base: Option<Option<String>> = sqlx::query_scalar("SELECT base_json FROM profile WHERE id = ?")
            .bind(id)
            .fetch_optional(self.pool())
            .await?;
        let base = base.ok_or_else(|| PROFILE.missed(id))?;
        let rows: Vec<(String, Option<u32>, Vec<u8>)> =
            sqlx::query_as("SELECT name, ranks, content FROM profile_file WHERE profile_id = ? ORDER BY position")
                .bind(id)
                .fetch_all(self.pool())
                .await?;
        let files = rows.into_iter().map(|(name, ranks, content)| ProfileFile { name, ranks, content }).collect();
        Ok((base, files))
    }
}

fn summary(row: SummaryRow) -> Result<ProfileSummary, StoreError> {
    let (id, name, note, tags, source, measurements, residual, created_at_ms, bytes, deleted_at_ms, pinned_at_ms) = row;
    Ok(ProfileSummary {
        id,
        name,
        note,
        tags: parse(&tags)?,
        source: parse(&source)?,
        measurements: measurements.unsigned_abs(),
        residual,
        created_at: rfc3339(created_at_ms),
        bytes: bytes.unsigned_abs(),
        pinned: pinned_at_ms.is_some(),
        deleted_at: deleted_at_ms.map(rfc3339),
    })
}

fn parse<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| PROFILE.damaged(&error))
}

fn json<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).expect("profiles have only text keys")
}
