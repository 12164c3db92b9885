//! Pages, build files and unknown paths.

use axum::body::Body;
use axum::http::Request;
use harness::TestServer;

async fn built() -> TestServer {
    let server = TestServer::open().await;
    let assets = server.path("web/assets");
    std::fs::create_dir_all(&assets).unwrap();
    std::fs::write(server.path("web/index.html"), "<!doctype html><title>Planscope</title>").unwrap();
    std::fs::write(server.path("web/favicon.svg"), "<svg xmlns='http://www.w3.org/2000/svg'/>").unwrap();
    std::fs::write(assets.join("app-1234.js"), "export {}").unwrap();
    std::fs::write(assets.join("app-1234.js.br"), "compressed by the build").unwrap();
    server
}

#[tokio::test]
async fn page_paths_show_the_page_and_other_paths_do_not() {
    let server = built().await;
    for path in [
        "/",
        "/new",
        "/s/abcdefghij",
        "/scenarios",
        "/datasets",
        "/schedules",
        "/papers",
        "/accuracy",
        "/accuracy?set=a",
        "/scenarios?sort=age",
    ] {
        let reply = server.get(path).await;
        assert_eq!((reply.status, reply.header("content-type")), (200, "text/html; charset=utf-8"), "{path}");
        assert_eq!(reply.header("cache-control"), "no-cache", "{path}");
        assert!(reply.text().contains("Planscope"));
    }
    for path in [
        "/nothing",
        "/s/a/b",
        "/assets/",
        "/assets/nothing.js",
        "/api/v1/nothing",
        "/../planscope.db",
        "/%2e%2e/planscope.db",
        "/index.html/",
    ] {
        assert_eq!(server.get(path).await.problem().status, 404, "{path}");
    }
}

#[tokio::test]
async fn a_browser_on_a_wrong_path_gets_a_page_that_says_so() {
    let server = built().await;
    let open = async |path: &str| {
        let request = Request::get(path).header("accept", "text/html,*/*;q=0.8").body(Body::empty()).unwrap();
        server.send(request).await
    };
    for path in ["/nothing", "/s/a/b", "/runs/a/b/"] {
        let reply = open(path).await;
        assert_eq!((reply.status, reply.header("content-type")), (404, "text/html; charset=utf-8"), "{path}");
        assert!(reply.text().contains("Planscope"), "{path}");
    }
    for path in ["/api/v1/nothing", "/assets/nothing.js"] {
        assert_eq!(open(path).await.problem().status, 404, "{path}");
    }
    assert_eq!(open("/favicon.svg").await.status, 200);
}

#[tokio::test]
async fn build_files_are_cached_and_compressed() {
    let server = built().await;
    let plain = server.get("/assets/app-1234.js").await;
    assert_eq!(plain.header("cache-control"), "public, max-age=31536000, immutable");
    assert_eq!((plain.header("content-type"), plain.text()), ("text/javascript", "export {}"));
    let request =
        Request::get("/assets/app-1234.js").header("accept-encoding", "gzip, br").body(Body::empty()).unwrap();
    let compressed = server.send(request).await;
    assert_eq!((compressed.header("content-encoding"), compressed.text()), ("br", "compressed by the build"));
    assert_eq!(server.get("/favicon.svg").await.header("cache-control"), "no-cache");
}

#[tokio::test]
async fn api_responses_are_compressed() {
    let server = TestServer::open().await;
    let request = Request::get(api::path::PRESETS).header("accept-encoding", "gzip").body(Body::empty()).unwrap();
    let reply = server.send(request).await;
    assert_eq!((reply.header("content-encoding"), &reply.body[..2]), ("gzip", &b"\x1f\x8b"[..]));
}

#[tokio::test]
async fn missing_build_explains_how_to_create_it() {
    let server = TestServer::open().await;
    let reply = server.get("/").await;
    assert_eq!(reply.status, 503);
    assert!(reply.text().contains("cargo xtask serve"), "{}", reply.text());
}

#[tokio::test]
async fn a_path_says_which_methods_it_takes() {
    let server = TestServer::open().await;
    let reply = server.request("PATCH", api::path::DATASETS, "").await;
    assert_eq!(reply.problem().status, 405);
    assert!(reply.header("allow").contains("POST"), "{reply:?}");
    assert_eq!(server.post("/nothing", "").await.problem().status, 404);
}
