use planner::workload::Dataset;
use planner::workload::preprocessing::Preprocessing;
use proptest::prelude::*;

use super::super::Imported;
use super::super::tests::{import, import_by};
use super::*;

mod misread;

/// Rows with all supported media fields.
const LINES: &str = r#"{"text_tokens": 120, "images": [[1344, 896]]}
{"text_tokens": 5, "frames": 16, "frame": [640, 360]}
{"text_tokens": 7}
{"text_tokens": 9, "audio_s": [12.5]}
"#;

/// Returns encoder items, text tokens and backbone tokens of all rows, and the report.
fn shaped(file: &[u8], rule: Preprocessing) -> (Vec<u32>, Vec<u32>, ShapedItems, super::super::Report) {
    match import_by(file, None, rule) {
        Ok(Imported { dataset: Dataset::Rows { text_tokens, images, shaped: Some(shaped) }, report }) => {
            (images, text_tokens, shaped, report)
        }
        other => panic!("{rule:?}: {other:?}"),
    }
}

/// InternVL: 1,344 x 896 pixels give 3 x 2 tiles and a thumbnail with 256 tokens each; a frame is
/// one tile. Qwen2-VL: 48 x 32 tokens; 8 pairs of frames with 23 x 13 tokens. LLaVA-OneVision: 4 x
/// 3 tiles and the complete image; 108 x 73 of 108 x 81 patches belong to the image, plus one token
/// after each of 73 rows, plus 729 tokens for the complete image; a frame has 196 tokens and one
/// token follows the frames. Qwen2-Audio: 1,250 frames, halved twice.
#[test]
fn every_rule_reads_the_same_rows_differently() {
    for (rule, items, backbone, encoder) in [
        (Preprocessing::InternVl, [7, 16, 0, 0], [7 * 256, 16 * 256, 0, 0], [7 * 1024, 16 * 1024, 0, 0]),
        (Preprocessing::QwenVl, [1, 8, 0, 0], [48 * 32, 8 * 299, 0, 0], [4 * 48 * 32, 8 * 4 * 299, 0, 0]),
        (
            Preprocessing::LlavaOneVision,
            [13, 16, 0, 0],
            [729 + 73 * 109, 16 * 196 + 1, 0, 0],
            [13 * 729, 16 * 729, 0, 0],
        ),
        (Preprocessing::Qwen2Audio, [0, 0, 0, 1], [0, 0, 0, 312], [0, 0, 0, 1500]),
    ] {
        let (images, text, columns, report) = shaped(LINES.as_bytes(), rule);
        assert_eq!((images.as_slice(), text.as_slice()), (&items[..], &[120, 5, 7, 9][..]), "{rule:?}");
        assert_eq!(columns.backbone_tokens, backbone, "{rule:?}");
        assert_eq!(columns.encoder_tokens, encoder, "{rule:?}");
        let media = report.media.expect("media");
        assert_eq!(media.columns, ["images", "frames", "frame", "audio_s"]);
        let sound = rule == Preprocessing::Qwen2Audio;
        assert_eq!(
            (media.without_items, media.unread_images, media.unread_frames, media.unread_clips),
            if sound { (3, 1, 16, 0) } else { (2, 0, 0, 1) },
            "{rule:?}"
        );
        assert_eq!((report.parsed, report.source.as_str()), (4, "key text_tokens"));
    }
}

/// Without a rule, the row count is unchanged and the report suggests a rule.
#[test]
fn media_without_a_rule_are_reported() {
    let Imported { dataset, report } = import(LINES.as_bytes(), None).unwrap();
    assert_eq!(dataset, Dataset::Rows { text_tokens: vec![120, 5, 7, 9], images: vec![1, 0, 0, 0], shaped: None });
    let advice = report.media.and_then(|media| media.advice).expect("advice");
    assert_eq!(
        advice,
        "images, frames, frame, audio_s hold media that no rule has read. Choose the preprocessing of the model: llava-onevision, internvl, \
         qwen-vl for images and video; qwen2-audio for sound"
    );
    let counted = import(b"text_tokens,images\n5,2\n", None).unwrap();
    assert_eq!(counted.report.media, None, "a number of images says nothing of their sizes");
}

/// One image per row, or the counted number of images. Width and height give the frame size if no
/// frame size is given. InternVL uses one tile per 448 x 448 pixels, and a thumbnail for 896 x 448.
#[test]
fn tables_lists_and_objects_say_the_same() {
    let csv = "text_tokens,image_width,image_height,frames,audio_s\n10,448,448,,4.37\n20,896,448,0,\n30,,,,\n40,640,360,3,2.0\n";
    let lists = r#"{"text_tokens": [10, 20, 30, 40], "image_width": [448, 896, null, 640], "image_height": [448, 448, null, 360],
        "frames": [null, 0, null, 3], "audio_s": [4.37, null, null, 2.0]}"#;
    let list = r#"[{"text_tokens": 10, "images": [{"width": 448, "height": 448}], "clips_s": 4.37},
        {"text_tokens": 20, "images": ["a.png"], "image_width": 896, "image_height": 448}, {"text_tokens": 30, "images": []},
        {"text_tokens": 40, "frames": 3, "frame": {"width": 640, "height": 360}, "clips_s": [2]}]"#;
    for file in [csv, lists, list] {
        let (items, text, columns, report) = shaped(file.as_bytes(), Preprocessing::InternVl);
        assert_eq!((items, text), (vec![1, 3, 0, 3], vec![10, 20, 30, 40]), "{file}");
        assert_eq!(columns.backbone_tokens, [256, 768, 0, 768], "{file}");
        assert_eq!(report.media.expect("media").unread_clips, 2, "{file}");
    }
    let counted = "images,width,height\n3,448,448\n";
    let (items, text, ..) = shaped(counted.as_bytes(), Preprocessing::InternVl);
    assert_eq!((items, text), (vec![3], vec![0]), "no text is no fault");
    let row = r#"{"text_tokens": 120, "images": [[448, 448], [448, 448]]}"#;
    assert_eq!(shaped(row.as_bytes(), Preprocessing::InternVl).0, [2]);
}

/// Written with Apache's writer: the rows of the table above; the last row has an image of 448 x
/// 448 pixels instead of frames.
const PARQUET: &str = "504152311504152015204c150815001200000a000000140000001e000000280000001500151415142c15081510150615061c\
    0000000200000008010203e4001504151015104c15041500120000c0010000800300001500151215122c1508151015061506\
    1c00000002000000030b0103021504150815084c15021500120000c00100001500151215122c15081510150615061c000000\
    02000000030b0106001504152015204c150415001200007b14ae47e17a114000000000000000401500151215122c15081510\
    150615061c0000000200000003090103021504195c35001806736368656d6115080015022502180b746578745f746f6b656e\
    730015022502180b696d6167655f77696474680015022502180c696d6167655f68656967687400150a25021807617564696f\
    5f73001608191c194c26001c1502193500061019180b746578745f746f6b656e73150016081676167626442608292c150415\
    00150200150015101502003c29061926000800000026001c1502193500061019180b696d6167655f77696474681500160816\
    64166426aa01267e292c15041500150200150015101502003c29061926020600000026001c1502193500061019180c696d61\
    67655f68656967687415001608165c165c26860226e201292c15041500150200150015101502003c29061926020600000026\
    001c150a1935000610191807617564696f5f73150016081674167426fa0226be02292c15041500150200150015101502003c\
    29061926040400000016aa031608260816aa03002820706172717565742d6370702d6172726f772076657273696f6e203236\
    2e302e31194c1c00001c00001c00001c0000009201000050415231";

#[test]
fn parquet_columns_hold_media_too() {
    let file: Vec<u8> =
        (0..PARQUET.len()).step_by(2).map(|at| u8::from_str_radix(&PARQUET[at..at + 2], 16).unwrap()).collect();
    let (items, text, columns, _) = shaped(&file, Preprocessing::InternVl);
    assert_eq!((items, text), (vec![1, 3, 0, 1], vec![10, 20, 30, 40]));
    assert_eq!(columns.backbone_tokens, [256, 768, 0, 256]);
    let (clips, _, columns, _) = shaped(&file, Preprocessing::Qwen2Audio);
    assert_eq!((clips, columns.backbone_tokens), (vec![1, 0, 0, 1], vec![109, 0, 0, 50]));
}

/// The report names the row, and the row is skipped. The import rejects a file with more than one
/// such row in ten.
#[test]
fn rows_that_cannot_be_are_left_out() {
    let good = "{\"text_tokens\": 5, \"images\": [[448, 448]]}\n".repeat(12);
    let many = format!("{{\"text_tokens\": 5, \"images\": [{}[1, 1]]}}", "[1, 1],".repeat(10_000));
    for (row, message) in [
        (r#"{"text_tokens": 5, "images": [[9, 9], [0, 9]]}"#, "images: image 2: 0 x 9 pixels: edges are 1 to 65536"),
        (r#"{"text_tokens": 5, "images": [[70000, 9]]}"#, "images: image 1: 70000 x 9 pixels: edges are 1 to 65536"),
        (r#"{"text_tokens": 5, "images": [[9, 9], "b.png"]}"#, "images: image 2 has no size"),
        (r#"{"text_tokens": 5, "images": ["a.png", "b.png"]}"#, "2 images without sizes"),
        (r#"{"text_tokens": 5, "audio_s": [1, -1]}"#, "audio_s: clip 2: -1 is not from 0 to 86400 s"),
        (r#"{"text_tokens": 5, "audio_s": "nan"}"#, "audio_s: \"nan\" is not a number"),
        (r#"{"text_tokens": 5, "audio_s": [NaN]}"#, "audio_s: clip 1 is no number of seconds"),
        (r#"{"text_tokens": 5, "frames": 4}"#, "4 frames without the size of a frame"),
        (
            r#"{"text_tokens": 5, "frames": 4.5, "frame": [9, 9]}"#,
            "frames: 4.5 is no number of frames from 0 to 100000",
        ),
        (r#"{"text_tokens": 5, "image_width": 9}"#, "an image has a width and no height"),
        (r#"{"text_tokens": 0}"#, "neither text nor anything that the rule reads"),
        (many.as_str(), "images: 10001 images are more than 10000"),
    ] {
        let (items, _, columns, report) = shaped(format!("{good}{row}\n").as_bytes(), Preprocessing::InternVl);
        assert_eq!((items.len(), columns.backbone_tokens.len(), report.skipped), (12, 12, 1), "{message}");
        let first = report.first_problem.unwrap();
        assert!(first.starts_with(&format!("line 13: {message}")), "{first}");
        // A file with only such rows is rejected, unless the row contains no media.
        for file in [row.to_owned(), format!("{row}\n{row}\n")]
            .into_iter()
            .filter(|_| !row.contains("NaN") && !row.contains("a.png"))
        {
            let refusal = import_by(file.as_bytes(), None, Preprocessing::InternVl).expect_err(message).to_string();
            assert!(refusal.contains(message) || refusal.contains("0 is not a length"), "{refusal}");
        }
    }
    let (items, .., report) =
        shaped(format!("{good}{{\"text_tokens\": 5, \"frame\": [9, 9]}}\n").as_bytes(), Preprocessing::InternVl);
    assert_eq!((items.len(), report.repaired), (13, 1));
    assert!(report.first_problem.unwrap().contains("without frames"));
    let (items, .., report) = shaped(format!("{good}{{\"text_tokens\": -5}}\n").as_bytes(), Preprocessing::InternVl);
    assert_eq!((items.len(), report.skipped), (12, 1));
    assert!(report.first_problem.unwrap().starts_with("line 13: -5 is not a length"));
}

/// A file without media is unchanged, and the report says so.
#[test]
fn a_rule_changes_nothing_without_media() {
    for file in
        ["3\n5\n", "tokens,images\n3,1\n5,0\n", r#"{"schema": "hist/1", "edges": [1, 2], "counts": [3]}"#, "[3, 5]"]
    {
        let plain = import(file.as_bytes(), None).unwrap();
        let by_rule = import_by(file.as_bytes(), None, Preprocessing::QwenVl).unwrap();
        assert_eq!(by_rule.dataset, plain.dataset, "{file}");
        let advice = by_rule.report.media.and_then(|media| media.advice).unwrap();
        assert!(advice.contains("nothing to preprocess"), "{advice}");
    }
    let message = import_by(b"5\n-7\n", None, Preprocessing::QwenVl).unwrap_err().to_string();
    assert_eq!(message, import(b"5\n-7\n", None).unwrap_err().to_string());
}

proptest! {
    /// All columns have equal row count, and no sample is empty.
    #[test]
    fn columns_have_equal_length(
        rows in prop::collection::vec((0_u32..300, 0_u32..5000, 0_u32..5000, 0_u32..40, -2.0_f64..90.0), 1..40),
        rule in prop::sample::select(Preprocessing::ALL.to_vec()),
    ) {
        let mut file = "text_tokens,image_width,image_height,frames,audio_s\n".to_owned();
        for (text, width, height, frames, seconds) in &rows {
            file.push_str(&[text.to_string(), width.to_string(), height.to_string(), frames.to_string(), seconds.to_string()].join(","));
            file.push('\n');
        }
        if let Ok(Imported { dataset: Dataset::Rows { text_tokens, images, shaped: Some(shaped) }, report }) =
            import_by(file.as_bytes(), None, rule)
        {
            let count = text_tokens.len();
            prop_assert_eq!(count as u64 + report.skipped, rows.len() as u64);
            prop_assert_eq!([images.len(), shaped.encoder_tokens.len(), shaped.encoder_squared.len(), shaped.backbone_tokens.len()], [count; 4]);
            for row in 0..count {
                prop_assert!(text_tokens[row] + shaped.backbone_tokens[row] > 0);
                prop_assert_eq!(images[row] == 0, shaped.encoder_tokens[row] == 0);
                // Equal lengths minimize the sum of squares (Cauchy-Schwarz).
                prop_assert!(shaped.encoder_squared[row] * u64::from(images[row].max(1)) >= u64::from(shaped.encoder_tokens[row]).pow(2));
            }
        }
    }
}

/// Conversations, captions and transcripts in rows with media count as text; similarities and turns
/// do not.
#[test]
fn text_in_media_rows_is_counted() {
    let options =
        |rule| super::super::Options { characters_per_token: 1.0, preprocessing: Some(rule), ..Default::default() };
    for (file, rule, text, items) in [
        // InternVL's layout, with one image and with two images.
        (
            "{\"id\": 0, \"image\": \"a.jpg\", \"width\": 448, \"height\": 448, \"conversations\": [{\"from\": \"human\", \"value\": \"<image>\\nabc\"}]}\n{\"id\": 1, \"image\": [\"a.jpg\", \"b.jpg\"], \"width_list\": [448, 448], \"height_list\": [448, 448], \"conversations\": [{\"from\": \"human\", \"value\": \"de\"}]}\n",
            Preprocessing::InternVl,
            [4, 2],
            [1, 2],
        ),
        // LAION.
        (
            "url,caption,width,height,similarity,punsafe\nu,abcde,448,448,0.3,0.001\nv,abc,448,448,0.33,0.002\n",
            Preprocessing::InternVl,
            [5, 3],
            [1, 1],
        ),
        ("caption,height,width\nabcde,448,448\nabc,448,448\n", Preprocessing::InternVl, [5, 3], [1, 1]),
        // NeMo manifest: 4.37 s are 109 tokens, one clip per row.
        (
            "{\"audio_filepath\": \"a.wav\", \"duration\": 4.37, \"text\": \"abcde\"}\n{\"audio_filepath\": \"b.wav\", \"duration\": 2.0, \"text\": \"abc\"}\n",
            Preprocessing::Qwen2Audio,
            [5, 3],
            [1, 1],
        ),
    ] {
        let imported = super::super::import(file.as_bytes(), &options(rule)).expect(file);
        let Dataset::Rows { text_tokens, images, shaped: Some(_) } = imported.dataset else { panic!("{file}") };
        assert_eq!((text_tokens.as_slice(), images.as_slice()), (&text[..], &items[..]), "{file}");
    }
    let manifest = "{\"audio_filepath\": \"a.wav\", \"duration\": 4.37, \"text\": \"abcde\"}\n";
    let unread = super::super::import(manifest.as_bytes(), &super::super::Options::default()).expect("a manifest");
    let advice = unread.report.media.and_then(|media| media.advice).unwrap_or_default();
    assert!(advice.starts_with("duration hold media") && advice.ends_with("qwen2-audio for sound"), "{advice}");
    let raw = "{\"video\": \"a.mp4\", \"num_frames\": 375, \"fps\": 25, \"width\": 640, \"height\": 360, \"caption\": \"abc\"}\n";
    let imported = super::super::import(raw.as_bytes(), &options(Preprocessing::InternVl)).expect("a video");
    assert!(
        imported
            .report
            .warnings
            .iter()
            .any(|warning| warning.contains("num_frames may count the frames of the video files"))
    );
}
