//! Profiles: what was measured, and what was fitted to it.

use api::profile::{FittedPart, PhaseFactor, Profile, ProfileEffect, ProfileList, ProfileSource, ProfileSummary};
use api::shelf::Words;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::forget::Forgetting;
use super::kept::KeptTable;
use super::{Kind, Order, Reader, Shelf, StoreError, Wanted, Writer, hashes};
use crate::clock::rfc3339;

const PROFILE: KeptTable =
    KeptTable { kind: Kind::Profile, table: "profile", name: "name", whole: "content_json IS NOT NULL" };
/// Takes what it holds, and its files with it, however many.
const FORGETTING: Forgetting = Forgetting {
    take: "UPDATE profile SET content_json = NULL, base_json = NULL, bytes = 0, sha256 = NULL
         WHERE id = (SELECT id FROM profile WHERE deleted_at_ms < ? AND content_json IS NOT NULL LIMIT 1)
         RETURNING id",
    with_it: &["DELETE FROM profile_file WHERE profile_id = ?"],
};

/// The list of profiles.
pub(crate) const PROFILES: Shelf = Shelf {
    table: "profile",
    text: "name || ' ' || coalesce(note, '') || ' ' || tags_json || ' ' || source_json || ' ' || id",
    tags: "tags_json",
    listed: "1",
    can_return: PROFILE.whole,
    stored: "SELECT coalesce(sum(bytes), 0) FROM profile",
    deleted: "SELECT coalesce(sum(bytes), 0) FROM profile WHERE deleted_at_ms IS NOT NULL",
    orders: &[
        Order { name: "created", key: "created_at_ms" },
        Order { name: "name", key: "lower(name)" },
        Order { name: "measurements", key: "measurements" },
        // Those that fit nothing count as the worst.
        Order { name: "residual", key: "coalesce(residual, 1e300)" },
        Order { name: "size", key: "bytes" },
    ],
};

/// A file of measurements as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileFile {
    /// Its name.
    pub name: String,
    /// Devices of a group, where whoever uploaded it said so.
    pub ranks: Option<u32>,
    /// The file.
    pub content: Vec<u8>,
}

/// What was fitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileContent {
    /// What it puts into a scenario.
    pub effect: ProfileEffect,
    /// Part by part.
    pub parts: Vec<FittedPart>,
    /// What was read, in words.
    pub report: Vec<String>,
    /// Phases of a run.
    #[serde(default)]
    pub factors: Vec<PhaseFactor>,
}

/// A profile to be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct NewProfile {
    /// Content address.
    pub id: String,
    /// Name to show.
    pub name: String,
    /// Where it comes from.
    pub source: ProfileSource,
    /// Measurements that were read.
    pub measurements: u64,
    /// Mean relative residual.
    pub residual: Option<f64>,
    /// What it was fitted from beside its files, JSON.
    pub base: Option<String>,
    /// What was fitted.
    pub content: ProfileContent,
    /// Files.
    pub files: Vec<ProfileFile>,
}

/// What a new profile takes the place of.
#[derive(Debug, Clone, Copy, Default)]
pub struct Replaced<'a> {
    /// The profile that goes, to be brought back like any deleted one.
    pub id: Option<&'a str>,
}

impl Writer {
    /// Stores a profile; the same content again changes nothing, except that a deleted one is back. Says whether it is new.
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
            write.room_for(content.len() + files).await?;
            // Word of a deleted one goes with its files; tags and note begin anew.
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
            .bind(hashes::of_one(&content))
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

    /// Changes name, note and tags.
    pub async fn change_profile(&self, id: &str, words: &Words, now: Timestamp) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        PROFILE.change(&mut write, id, words, now).await?;
        write.commit().await
    }

    /// Deletes a profile. Its files stay until [`Writer::forget_profiles`].
    pub async fn delete_profile(&self, id: &str, now: Timestamp) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        PROFILE.delete(&mut write, id, now).await?;
        write.commit().await
    }

    /// Brings a deleted profile back, unless it was forgotten; one that is there stays.
    pub async fn restore_profile(&self, id: &str) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        PROFILE.restore(&mut write, id, "").await?;
        write.commit().await
    }

    /// Forgets for good what was deleted before a time, one after the other, so that others write in between. Says how many
    /// profiles went.
    pub async fn forget_profiles(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.forget_all(&FORGETTING, before).await
    }
}

/// Everything of a row that lists show.
type SummaryRow =
    (String, String, Option<String>, String, String, i64, Option<f64>, i64, i64, Option<i64>, Option<i64>);

const COLUMNS: &str =
    "id, name, note, tags_json, source_json, measurements, residual, created_at_ms, bytes, deleted_at_ms, pinned_at_ms";

impl Reader {
    /// A page of the stored profiles.
    pub(crate) async fn profiles(&self, wanted: &Wanted, retention_days: u32) -> Result<ProfileList, StoreError> {
        let mut found = self.page(&PROFILES, wanted).await?;
        found.page.retention_days = retention_days;
        let query = format!("SELECT {COLUMNS} FROM profile WHERE id IN (SELECT value FROM json_each(?))");
        let rows: Vec<SummaryRow> =
            sqlx::query_as(sqlx::AssertSqlSafe(query)).bind(found.json()).fetch_all(self.pool()).await?;
        let rows = found.in_order(rows, |row| &row.0);
        Ok(ProfileList { profiles: rows.into_iter().map(summary).collect::<Result<_, _>>()?, page: found.page })
    }

    /// One profile, whole.
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

    /// What a profile was fitted from: its base and its files, in their order.
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
