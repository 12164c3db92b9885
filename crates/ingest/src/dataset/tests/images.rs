//! Images of conversations and texts: names of columns, objects, placeholders, and other media.

use super::*;

/// A row with a conversation of 40 characters, and further fields.
fn chat(fields: &str) -> String {
    format!(
        "{{{fields}, \"conversations\": [{{\"from\": \"human\", \"value\": \"{}\"}}, {{\"from\": \"gpt\", \"value\": \"{}\"}}]}}\n",
        "ab cd efgh".repeat(2),
        "answer now".repeat(2)
    )
}

#[test]
fn images_have_many_names() {
    for (fields, expected) in [
        (r#""img_path": "a.jpg""#, 1),
        (r#""image_file": "a.jpg""#, 1),
        (r#""image_url": "https://host/a""#, 1),
        (r#""img": "a.jpg""#, 1),
        (r#""media": ["a.jpg"]"#, 1),
        (r#""media": ["a.jpg", "b.mp4", "c.png"]"#, 2),
        (r#""image_list": ["a.jpg", "b.jpg", "c.jpg"]"#, 3),
        (r#""images_list": ["a.jpg", "b.jpg"]"#, 2),
        (r#""image_names": ["a.jpg", "b.jpg"]"#, 2),
        (r#""image": {"<image_00>": "a.jpg", "<image_01>": "b.jpg"}"#, 2),
        (r#""images": {"image1": "a.jpg", "image2": "b.jpg"}"#, 2),
        (r#""image": {"path": "a.jpg", "bytes": null}"#, 1),
    ] {
        let (lengths, images, _) = rows(&chat(fields).repeat(3));
        assert_eq!((lengths, images), (vec![10; 3], vec![expected; 3]), "{fields}");
    }
    // A column of this name may hold the name of a newspaper.
    let (_, images, _) = rows("media,text\nDaily,ab cd efgh ij\nMail,ab cd efgh ij\n");
    assert_eq!(images, Vec::<u32>::new());
}

#[test]
fn numbered_placeholders_are_no_text() {
    let row = |text: &str| {
        format!(
            "{{\"messages\": [{{\"role\": \"user\", \"content\": \"{text}\"}}, {{\"role\": \"assistant\", \"content\": \"<image_1> it is\"}}]}}\n"
        )
    };
    let (lengths, images, _) = rows(&row("<image_0><image_1>ab cd ef"));
    // 8 and 6 characters; the second image occurs twice.
    assert_eq!((lengths, images), (vec![4], vec![2]));
}

#[test]
fn placeholders_in_plain_texts_are_images() {
    let text = "{\"text\": \"<image>ab cd<image>ef gh ij\"}\n".repeat(3);
    let (lengths, images, report) = rows(&text);
    assert_eq!((lengths, images), (vec![4; 3], vec![2; 3]));
    assert!(report.warnings.contains(&"Each <image> in the texts of text is counted as an image.".to_owned()));
    let rare = "{\"text\": \"ab cd ef gh ij kl mn\"}\n".repeat(30) + "{\"text\": \"the tag <image> of a page\"}\n";
    let (_, images, report) = rows(&rare);
    assert_eq!(images, Vec::<u32>::new());
    assert!(
        report.warnings.iter().any(|warning| warning.contains("occurs in 1 of the first 31 texts")),
        "{:?}",
        report.warnings
    );
}

#[test]
fn interleaved_documents_list_their_images() {
    let row = r#"{"text_list": ["ab cd ef", "gh ij kl"], "image_info": [{"image_name": "a.jpg", "matched_text_index": 0}, {"image_name": "b.jpg", "matched_text_index": 1}], "similarity_matrix": [[0.1, 0.2]]}"#;
    let (lengths, images, _) = rows(&format!("{row}\n{row}\n"));
    assert_eq!((lengths, images), (vec![4; 2], vec![2; 2]));
}

#[test]
fn video_and_sound_in_messages_are_named() {
    let parts = r#"{"messages": [{"role": "user", "content": [{"type": "video", "video": "a.mp4"}, {"type": "audio", "audio": "a.wav"}, {"type": "text", "text": "ab cd ef"}]}, {"role": "assistant", "content": "gh ij kl"}]}"#;
    let urls = r#"{"messages": [{"role": "user", "content": [{"type": "video_url", "video_url": {"url": "a"}}, {"type": "input_audio", "input_audio": {"data": "A"}}, {"type": "text", "text": "ab cd ef"}]}, {"role": "assistant", "content": "gh ij kl"}]}"#;
    let tags = r#"{"messages": [{"role": "user", "content": "<video><audio>ab cd ef"}, {"role": "assistant", "content": "gh ij kl"}]}"#;
    for row in [parts, urls, tags] {
        let (lengths, _, report) = rows(&format!("{row}\n{row}\n"));
        assert_eq!(lengths, [4, 4], "{row}");
        for medium in ["video", "audio"] {
            let sentence = format!(
                "The {medium} inside messages is not counted: the file does not hold its frames or its duration."
            );
            assert!(report.warnings.contains(&sentence), "{row}: {:?}", report.warnings);
        }
    }
    // A column of the same medium is named once.
    let column = tags.replace("{\"messages\"", "{\"videos\": [\"a.mp4\"], \"audios\": [\"a.wav\"], \"messages\"");
    let (_, _, report) = rows(&format!("{column}\n{column}\n"));
    assert_eq!(report.warnings.iter().filter(|warning| warning.contains("frames or its duration")).count(), 2);
    let (_, _, report) = rows(&chat(r#""media": ["a.mp4"]"#).repeat(2));
    assert!(
        report.warnings.iter().any(|warning| warning.starts_with("The video or sound of media is not counted")),
        "{:?}",
        report.warnings
    );
}

/// Files and sizes of media under general names are named.
#[test]
fn media_under_general_names_are_named() {
    let text = "ab cd efgh ij ".repeat(4);
    let warned = |fields: &str| {
        let (lengths, images, report) = rows(&format!("{{{fields}, \"text\": \"{text}\"}}\n").repeat(3));
        assert_eq!((lengths.len(), images.len()), (3, 0), "{fields}");
        report.warnings.iter().filter(|warning| warning.contains("counted")).cloned().collect::<Vec<_>>().concat()
    };
    for (fields, expected) in [
        (r#""file_name": "0001.png""#, "The images of file_name are not counted"),
        (r#""url": "https://host/a.jpg?size=1""#, "The images of url are not counted"),
        (r#""file_name": "0001.wav""#, "The video or sound of file_name is not counted"),
        (r#""path": "a/b.mp4""#, "The video or sound of path is not counted"),
        (r#""mp4": {"path": null, "bytes": "AA"}"#, "The video or sound of mp4 is not counted"),
        (r#""bucket": "1024x576""#, "bucket holds sizes in pixels"),
        (r#""resolution": [640, 480]"#, "resolution holds sizes in pixels"),
    ] {
        assert!(warned(fields).contains(expected), "{fields}: {}", warned(fields));
    }
    for fields in
        [r#""url": "https://host/a.html""#, r#""path": "a.md""#, r#""version": "3x""#, r#""span": [640, 480]"#]
    {
        assert!(!warned(fields).contains(fields.split('"').nth(1).unwrap()), "{fields}: {}", warned(fields));
    }
}
