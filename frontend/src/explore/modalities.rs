//! Non-text modalities of a model, and removal of unsupported modalities from the samples.

use serde_json::{Value, json};

use crate::pointer;

/// Non-text modalities that a model reads or generates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Modalities {
    /// Images, read by an encoder or generated.
    pub(crate) images: bool,
    /// Audio clips.
    pub(crate) sound: bool,
    /// Video clips.
    pub(crate) video: bool,
}

impl Modalities {
    /// Reads the modalities from the model of a scenario.
    pub(crate) fn from_scenario(scenario: &Value) -> Self {
        let modules = pointer::get(scenario, "/model/modules").and_then(Value::as_array);
        let any = |wanted: &dyn Fn(&Value) -> bool| modules.is_some_and(|modules| modules.iter().any(wanted));
        Self {
            images: any(&|module| module["role"] == "vision_encoder" || generates(module, "patch")),
            sound: any(&|module| module["role"] == "audio_encoder"),
            video: any(&|module| generates(module, "video")),
        }
    }

    /// Returns true if the model has a non-text modality.
    pub(crate) const fn any(self) -> bool {
        self.images || self.sound || self.video
    }
}

fn generates(module: &Value, field: &str) -> bool {
    module["role"] == "generator" && module[field].is_object()
}

/// Removes modalities from the workload that the model does not read. The server rejects such
/// workloads.
pub(crate) fn leave_out_unread(scenario: &mut Value) {
    let reads = Modalities::from_scenario(scenario);
    if let Some(source) = scenario.pointer_mut("/workload/samples") {
        strip_unread_source_fields(source, reads);
    }
    if !reads.video {
        pointer::remove(scenario, "/workload/max_video_s");
    }
}

fn strip_unread_source_fields(source: &mut Value, reads: Modalities) {
    match source["kind"].as_str() {
        Some("drawn" | "dataset") => {
            if !reads.images {
                source["images"] = json!({"kind": "constant", "value": 0});
            }
            for (field, read) in [("audio_clips", reads.sound), ("video_s", reads.video)] {
                if !read {
                    pointer::remove(source, &format!("/{field}"));
                }
            }
        }
        Some("mixture") => {
            for part in source["parts"].as_array_mut().into_iter().flatten() {
                strip_unread_source_fields(&mut part["source"], reads);
            }
        }
        Some("phases") => {
            // Only images have phases.
            if reads.images {
                strip_unread_source_fields(&mut source["source"], reads);
            } else {
                *source = source["source"].take();
                strip_unread_source_fields(source, reads);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(modules: &Value, samples: &Value) -> Value {
        json!({"model": {"modules": modules}, "workload": {"samples": samples, "max_video_s": 16.0}})
    }

    #[test]
    fn modalities_follow_model_modules() {
        for (modules, [images, sound, video]) in [
            (json!([{"role": "backbone"}]), [false; 3]),
            (json!([{"role": "vision_encoder"}, {"role": "audio_encoder"}, {"role": "backbone"}]), [true, true, false]),
            (json!([{"role": "generator", "patch": {}}]), [true, false, false]),
            (json!([{"role": "backbone"}, {"role": "generator", "video": {}}]), [false, false, true]),
        ] {
            let found = Modalities::from_scenario(&scenario(&modules, &Value::Null));
            assert_eq!(found, Modalities { images, sound, video }, "{modules}");
        }
    }

    #[test]
    fn unread_modalities_are_removed_at_every_depth() {
        let constant = json!({"kind": "constant", "value": 1});
        let none = json!({"kind": "constant", "value": 0});
        let full = json!({"kind": "drawn", "text_tokens": constant, "images": constant, "audio_clips": constant, "video_s": constant});
        let text = json!({"kind": "drawn", "text_tokens": constant, "images": none});
        let mixture = |source: &Value| json!({"kind": "mixture", "parts": [{"weight": 1.0, "source": source}]});
        let phases = json!({"kind": "phases", "period": 2, "images": [], "source": full});
        let backbone = json!([{"role": "backbone"}]);
        for (samples, left) in [(mixture(&full), mixture(&text)), (phases.clone(), text.clone())] {
            let mut scenario = scenario(&backbone, &samples);
            leave_out_unread(&mut scenario);
            assert_eq!(scenario["workload"], json!({"samples": left}));
        }
        let mut reader = scenario(&json!([{"role": "vision_encoder"}, {"role": "backbone"}]), &phases);
        leave_out_unread(&mut reader);
        assert_eq!(reader["workload"]["samples"]["kind"], "phases");
        assert_eq!(
            reader["workload"]["samples"]["source"],
            json!({"kind": "drawn", "text_tokens": constant, "images": constant})
        );
        let mut maker = scenario(&json!([{"role": "generator", "video": {}}]), &full);
        leave_out_unread(&mut maker);
        assert_eq!(
            (&maker["workload"]["samples"]["video_s"], &maker["workload"]["samples"]["images"]),
            (&constant, &none)
        );
        assert_eq!(maker["workload"]["max_video_s"], 16.0);
    }
}
