//! Rows whose media had another meaning than the reading.

use super::super::super::{ImportError, Options};
use super::*;

/// A text of 39 characters, which is 10 tokens.
const TEXT: &str = "ab cd ef gh ij kl mn op qr st uv wx yz.";

/// Rows of JSON with a text of 10 tokens.
fn lines(fields: &str) -> String {
    format!("{{{fields}, \"text\": \"{TEXT}\"}}\n").repeat(3)
}

fn refused(file: &str, rule: Preprocessing) -> String {
    import_by(file.as_bytes(), None, rule).expect_err(file).to_string()
}

/// Returns the backbone tokens of the first row without its text.
fn tokens(file: &str, rule: Preprocessing) -> u32 {
    shaped(file.as_bytes(), rule).2.backbone_tokens[0]
}

fn warnings(file: &str, rule: Preprocessing) -> String {
    shaped(file.as_bytes(), rule).3.warnings.join("\n")
}

/// The size of a video is no image, whatever else the row says of the video.
#[test]
fn a_video_without_frames_is_no_image() {
    let size = r#""width": 640, "height": 360"#;
    for fields in [
        r#""video": "a.mp4""#,
        r#""video": "a.mp4", "duration": 10.0, "fps": 30"#,
        r#""video_path": "a", "duration": "00:00:10""#,
        r#""file_name": "a.mp4""#,
        r#""media": ["a.mp4"]"#,
        r#""id": 5, "duration (min)": 2.0"#,
        r#""id": 5, "duration_ms": 2000"#,
        r#""id": 5, "Frame rate": 30"#,
    ] {
        let file = lines(&format!("{fields}, {size}"));
        for rule in [Preprocessing::InternVl, Preprocessing::QwenVl, Preprocessing::LlavaOneVision] {
            let refusal = refused(&file, rule);
            assert!(
                refusal.contains("a video without the number of its frames") && refusal.contains("num_frames"),
                "{refusal}"
            );
        }
        let (items, ..) = shaped(file.as_bytes(), Preprocessing::Qwen2Audio);
        assert_eq!(items, [0; 3], "{fields}");
        // 16 sampled frames of one tile each.
        let sampled = lines(&format!("{fields}, {size}, \"nframes\": 16"));
        assert_eq!(tokens(&sampled, Preprocessing::InternVl), 16 * 256, "{fields}");
    }
    // Images beside videos, files of a page, and columns without a value.
    for fields in [
        r#""image": "a.jpg", "video": null"#,
        r#""image": "a.jpg", "video": "b.mp4", "fps": 30"#,
        r#""file_name": "a.jpg", "duration": 3.5"#,
        r#""video": "", "fps": 0"#,
    ] {
        let file = lines(&format!("{fields}, \"width\": 448, \"height\": 448"));
        assert_eq!(tokens(&file, Preprocessing::InternVl), 256, "{fields}");
    }
    let both = lines(r#""image": "a.jpg", "video": "b.mp4", "width": 448, "height": 448"#);
    assert!(warnings(&both, Preprocessing::InternVl).contains("The videos of video are not counted"));
    let without_rule = import(lines(&format!("\"video_path\": \"a.mp4\", {size}")).as_bytes(), None).unwrap().report;
    assert!(without_rule.warnings.join("\n").contains("Add it as num_frames"), "{:?}", without_rule.warnings);
}

/// A text is asked for with a rule, as it is without one.
#[test]
fn text_of_unknown_name_is_asked_for() {
    let text = "red shoe with laces on a white table in the sun";
    let csv = format!("image,width,height,description\na.jpg,448,448,{text}\nb.jpg,448,448,{text}\n");
    let two = format!(
        "{{\"image\": \"a.jpg\", \"width\": 448, \"height\": 448, \"ocr\": \"{text}\", \"alt\": \"{text}\"}}\n"
    );
    for file in [csv.as_str(), &two.repeat(3)] {
        let by_rule = import_by(file.as_bytes(), None, Preprocessing::InternVl);
        assert!(matches!(&by_rule, Err(ImportError::Unclear { .. })), "{by_rule:?}");
        assert!(matches!(import(file.as_bytes(), None), Err(ImportError::Unclear { .. })));
    }
    let chosen = import_by(csv.as_bytes(), Some("description"), Preprocessing::InternVl).unwrap();
    assert!(matches!(chosen.dataset, Dataset::Rows { text_tokens, .. } if text_tokens == [12, 12]));
    // Names of files and short words are no text of a sample.
    let short = "image,width,height,camera\na.jpg,448,448,left\nb.jpg,448,448,right\n";
    assert!(
        warnings(short, Preprocessing::InternVl)
            .contains("No text is counted. Choose a column if training reads it: camera.")
    );
    let none = "file_name,width,height\na.jpg,448,448\nb.jpg,448,448\n";
    assert_eq!(warnings(none, Preprocessing::InternVl), "");
}

/// The size of the image is read, not the size of a box in it, in any order.
#[test]
fn one_of_two_sizes_is_read_by_name() {
    let image = r#""image_width": 896, "image_height": 448"#;
    let inner = r#""width": 64, "height": 0.5"#;
    for fields in [format!("{image}, {inner}"), format!("{inner}, {image}")] {
        let file = lines(&fields);
        assert_eq!(tokens(&file, Preprocessing::InternVl), 3 * 256, "{fields}");
        assert!(
            warnings(&file, Preprocessing::InternVl)
                .contains("image_width is read. width counts only in rows without it.")
        );
    }
    // img2dataset writes the size before and after it scales the image.
    let scaled = lines(r#""original_width": 4000, "original_height": 3000, "height": 448, "width": 896"#);
    assert_eq!(tokens(&scaled, Preprocessing::InternVl), 3 * 256);
    let half = lines(r#""image_width": 896, "width": 64, "height": 32"#);
    assert!(refused(&half, Preprocessing::InternVl).contains("an image has a width and no height"));
    let twice = lines(r#""audio": "a.wav", "audio_s": 4.37, "duration": 4.37"#);
    assert_eq!(tokens(&twice, Preprocessing::Qwen2Audio), 109, "one clip");
}

/// The encoder reads 30 s. A number above an hour is probably no number of seconds.
#[test]
fn long_clips_are_named() {
    let clip = |seconds: &str| lines(&format!("\"audio\": \"a.wav\", \"duration\": {seconds}"));
    let rule = Preprocessing::Qwen2Audio;
    assert!(
        warnings(&clip("120.0"), rule).contains("3 of 3 audio clips are longer than the 30 s that qwen2-audio reads")
    );
    assert!(!warnings(&clip("30.0"), rule).contains("longer"));
    let doubt = warnings(&clip("10000"), rule);
    assert!(doubt.contains("The typical clip of duration has 10000 s") && doubt.contains("audio_ms"), "{doubt}");
    assert!(refused(&clip("160000"), rule).contains("is not from 0 to 86400 s; milliseconds have the name audio_ms"));
}

#[test]
fn frames_of_a_file_are_doubted() {
    let frames =
        |count: u32| lines(&format!("\"video\": \"a.mp4\", \"num_frames\": {count}, \"width\": 640, \"height\": 360"));
    let doubt = warnings(&frames(300), Preprocessing::QwenVl);
    assert!(
        doubt.contains("num_frames may count the frames of the video files, because a video has 300 frames"),
        "{doubt}"
    );
    assert!(!warnings(&frames(32), Preprocessing::QwenVl).contains("may count"));
}

#[test]
fn every_image_needs_a_size() {
    for (fields, message) in [
        (r#""images": ["a.jpg", "b.jpg"], "widths": [896], "heights": [448]"#, "2 images and the sizes of only 1"),
        (
            r#""image": ["a.jpg", "b.jpg"], "width_list": [896], "height_list": [448]"#,
            "2 images and the sizes of only 1",
        ),
        (r#""num_images": 3, "image_sizes": [[448, 448]]"#, "3 images and the sizes of only 1"),
    ] {
        assert!(refused(&lines(fields), Preprocessing::InternVl).contains(message), "{fields}");
    }
    let shared = lines(r#""image": ["a.jpg", "b.jpg"], "width": 448, "height": 448"#);
    assert_eq!(tokens(&shared, Preprocessing::InternVl), 2 * 256);
}

/// 4.37 s are 109 tokens, 3 tiles 768.
#[test]
fn units_in_names_and_values_are_read() {
    for fields in [
        r#""audio": "a.wav", "duration_ms": 4370"#,
        r#""audio": "a.wav", "duration (s)": 4.37"#,
        r#""path": "a.wav", "duration": "4.37 s""#,
        r#""audio_ms": [4370]"#,
        r#""audio_duration": "4.37s", "audio": "a.wav""#,
    ] {
        assert_eq!(tokens(&lines(fields), Preprocessing::Qwen2Audio), 109, "{fields}");
    }
    for fields in [
        r#""width (px)": 896, "Height [px]": 448"#,
        r#""width": "896px", "height": "448 px""#,
        r#""original_width": 896, "original_height": 448"#,
        r#""Breite": 896, "Höhe": 448"#,
    ] {
        assert_eq!(tokens(&lines(fields), Preprocessing::InternVl), 3 * 256, "{fields}");
    }
}

/// Names that are not known are told, with those that are.
#[test]
fn sizes_under_unknown_names_are_told() {
    for (fields, name) in [
        (r#""image": "a.jpg", "image_hw": [448, 896]"#, "image_hw"),
        (r#""image": {"path": "a.jpg", "size": [896, 448]}"#, "image"),
        (r#""audio": "a.wav", "audio_length": 160000"#, "audio_length"),
        (r#""audio": "a.wav", "num_samples": 160000, "sampling_rate": 16000"#, "num_samples, sampling_rate"),
        (r#""audio_path": "a.wav", "duration_min": 0.5"#, "duration_min"),
    ] {
        let report = import_by(lines(fields).as_bytes(), None, Preprocessing::QwenVl).expect(fields).report;
        let advice = report.media.and_then(|media| media.advice).unwrap_or_default();
        let named = advice.contains(&format!("{name} may hold them under another name")) && advice.contains("audio_s");
        assert!(named, "{fields}: {advice}");
    }
}

/// Media columns have the notations of columns of lengths.
#[test]
fn numbers_of_media_have_any_notation() {
    let table = |header: &str, cells: [&str; 3]| {
        let rows = cells.map(|cells| format!("a;{cells};{TEXT}\n"));
        format!("name;{header};text\n{}", rows.concat())
    };
    for (header, cells) in [
        ("width;height", ["1.344;896", "1.344;896", "1.344;896"]),
        ("width;height", ["1344,0;896,0", "1344,0;896,0", "1344,0;896,0"]),
        ("width;height", ["1344.0;896.0", "1344;896", "1344;896"]),
        ("width;height", ["1344.000;896.000", "896.000;448.000", "448.000;448.000"]),
        ("width;height", ["1'344;896", "1'344;896", "1'344;896"]),
    ] {
        assert_eq!(tokens(&table(header, cells), Preprocessing::InternVl), 7 * 256, "{cells:?}");
    }
    let sound = |cells: [&str; 3]| table("audio_s", cells);
    for cells in [["4,37", "10,5", "3,0"], ["4.37", "10.125", "3.0"], ["4,37", "10,125", "12"]] {
        assert_eq!(tokens(&sound(cells), Preprocessing::Qwen2Audio), 109, "{cells:?}");
    }
    // Three decimals are no thousands, unless a comma may separate them.
    assert_eq!(tokens(&sound(["4.375", "10.125", "12"]), Preprocessing::Qwen2Audio), 109);
    for file in [sound(["4,375", "10,125", "12,250"]), format!("audio_s,text\n\"4,375\",{TEXT}\n\"10,125\",{TEXT}\n")] {
        assert!(refused(&file, Preprocessing::Qwen2Audio).contains("two readings"), "{file}");
    }
    let words = table("width;height", ["wide;896", "wide;896", "wide;896"]);
    assert!(refused(&words, Preprocessing::InternVl).contains("write digits with a decimal point"));
    let options = Options { preprocessing: Some(Preprocessing::InternVl), ..Options::default() };
    let lone = "width;height\n1.344;896\n1.344;896\n";
    let read = super::super::super::import(lone.as_bytes(), &options).expect("a table without text");
    assert_eq!(read.dataset.shaped().expect("media").backbone_tokens, [7 * 256; 2]);
}
