//! Whole regions: down, draining, slow, throttled, and up again.

use perihelion_emulator::faults::{DownMode, RegionCondition, RegionHealth};

use super::*;

const EAST: &str = "East US";

impl Lab {
    fn east(&self) -> RegionHealth {
        self.running.region(EAST).unwrap().health().unwrap()
    }
}

#[tokio::test]
async fn a_refused_region_resets_its_clients_and_comes_back_on_the_same_port() {
    let lab = Lab::start().await;
    let port = lab.port(1);
    for spoken in Spoken::ALL {
        let mut link = lab.link_to(1, spoken).await;
        assert_eq!(link.send(lab.account()).await.unwrap().status, 200);
        let raw = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        lab.running.region(EAST).unwrap().down(DownMode::Refused).unwrap();
        let error = TcpStream::connect(("127.0.0.1", port)).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused, "{spoken:?}");
        assert!(link.send(lab.account()).await.is_err(), "{spoken:?}");
        link.closed().await;
        assert_eq!(in_time(until_broken(raw)).await, io::ErrorKind::ConnectionReset);
        assert_eq!(lab.link(spoken).await.send(lab.account()).await.unwrap().status, 200, "the others go on");

        lab.running.region(EAST).unwrap().up().unwrap();
        assert_eq!(lab.port(1), port);
        assert_eq!(lab.link_to(1, spoken).await.send(lab.account()).await.unwrap().status, 200, "{spoken:?}");
    }
}

/// How a connection that sends nothing ends.
async fn until_broken(stream: TcpStream) -> io::ErrorKind {
    loop {
        stream.readable().await.unwrap();
        match stream.try_read(&mut [0; 16]) {
            Ok(0) => return io::ErrorKind::UnexpectedEof,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return error.kind(),
        }
    }
}

#[tokio::test]
async fn a_region_comes_back_by_itself_when_its_time_has_passed() {
    let lab = Lab::start().await;
    for how in [DownMode::Refused, DownMode::BlackHole] {
        lab.running.region(EAST).unwrap().lasting(Duration::from_secs(30)).down(how).unwrap();
        lab.clock.advance(Duration::from_secs(29));
        let report = &lab.east();
        assert_eq!((report.listens, report.ends_in.unwrap().0), (false, Duration::from_secs(1)), "{how:?}");
        lab.clock.advance(Duration::from_secs(1));
        in_time(async {
            while !lab.east().listens {
                tokio::task::yield_now().await;
            }
        })
        .await;
        let answer = lab.link_to(1, Spoken::Http1).await.send(lab.account()).await.unwrap();
        assert_eq!(answer.status, 200, "{how:?}");
        assert_eq!(lab.east().condition, RegionCondition::Up);
    }
}

#[tokio::test]
async fn a_port_that_was_taken_meanwhile_is_named_and_used_again_once_it_is_free() {
    let lab = Lab::start().await;
    let port = lab.port(1);
    let east = lab.running.region(EAST).unwrap();
    east.down(DownMode::Refused).unwrap();
    let squatter = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    let error = east.up().unwrap_err().to_string();
    assert!(error.contains(&port.to_string()) && error.contains(EAST) && error.contains("stop"), "{error}");
    assert!(lab.east().problem.is_some());
    drop(squatter);
    in_time(async {
        while !lab.east().listens {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(lab.link_to(1, Spoken::Http1).await.send(lab.account()).await.unwrap().status, 200);
    assert_eq!(lab.east().problem, None);
}

#[tokio::test]
async fn a_black_hole_swallows_everything_until_it_ends() {
    let lab = Lab::start().await;
    let port = lab.port(1);
    for spoken in Spoken::ALL {
        let mut link = lab.link_to(1, spoken).await;
        assert_eq!(link.send(lab.account()).await.unwrap().status, 200);
        lab.running.region(EAST).unwrap().down(DownMode::BlackHole).unwrap();
        let request = lab.account();
        let mut asked = tokio::spawn(async move { link.send(request).await.map(|answer| answer.status) });
        assert!(tokio::time::timeout(GLANCE, &mut asked).await.is_err(), "{spoken:?}: an open one is silent");
        let newcomer =
            async { lab.try_link(port, spoken).await?.send(lab.account()).await.map_err(io::Error::other) };
        let mut newcomer = std::pin::pin!(newcomer);
        assert!(
            tokio::time::timeout(GLANCE, newcomer.as_mut()).await.is_err(),
            "{spoken:?}: so is a new one"
        );

        lab.running.region(EAST).unwrap().up().unwrap();
        assert_eq!(in_time(asked).await.unwrap().unwrap(), 200, "{spoken:?}: what was said is heard at last");
        assert_eq!(in_time(newcomer).await.unwrap().status, 200, "{spoken:?}");
    }
}

#[tokio::test]
async fn an_emulator_stops_whatever_its_regions_are() {
    for how in [DownMode::Refused, DownMode::BlackHole] {
        let lab = Lab::start().await;
        let mut link = lab.link_to(1, Spoken::Http1).await;
        assert_eq!(link.send(lab.account()).await.unwrap().status, 200);
        lab.running.region(EAST).unwrap().down(how).unwrap();
        in_time(lab.running.stop()).await;
        link.closed().await;
    }
}

#[tokio::test]
async fn a_handle_that_outlives_its_emulator_opens_no_ports() {
    let lab = Lab::start().await;
    let (port, faults) = (lab.port(1), lab.faults().clone());
    lab.running.region(EAST).unwrap().down(DownMode::Refused).unwrap();
    lab.running.stop().await;
    faults.clear().unwrap();
    let error = TcpStream::connect(("127.0.0.1", port)).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn a_region_in_trouble_says_so_in_the_service_s_words() {
    let lab = Lab::start().await;
    let east = lab.running.region(EAST).unwrap();
    for spoken in Spoken::ALL {
        let mut link = lab.link_to(1, spoken).await;
        east.down(DownMode::Unavailable).unwrap();
        let answer = link.send(lab.account()).await.unwrap();
        assert_eq!((answer.status, &answer.body["code"]), (503, &json!("ServiceUnavailable")), "{spoken:?}");

        east.drain().unwrap();
        let answer = link.send(lab.account()).await.unwrap();
        assert_eq!((answer.status, answer.header("x-ms-substatus")), (403, "1008"), "{spoken:?}");
        let expected = json!({
            "code": "Forbidden",
            "message": "Database Account perihelion does not exist",
            "writableLocations": [],
            "readableLocations": [],
            "id": "perihelion",
        });
        assert_eq!(answer.body, expected);
        let listed = lab.link(spoken).await.send(lab.account()).await.unwrap().body;
        assert_eq!(listed["readableLocations"].as_array().unwrap().len(), 3, "it is still listed");

        east.storm().unwrap();
        let answer = link.send(lab.read("there")).await.unwrap();
        assert_eq!((answer.status, answer.header("x-ms-substatus")), (429, "3200"), "{spoken:?}");
        assert_eq!(answer.header("x-ms-retry-after-ms"), "100");

        east.up().unwrap();
        assert_eq!(link.send(lab.account()).await.unwrap().status, 200, "{spoken:?}");
    }
}

#[tokio::test]
async fn a_slow_region_answers_late_and_a_second_trouble_replaces_the_first() {
    let lab = Lab::start().await;
    let east = lab.running.region(EAST).unwrap();
    east.slow(Duration::from_secs(3)).unwrap();
    let mut link = lab.link_to(1, Spoken::Http2).await;
    let request = lab.account();
    let sending = tokio::spawn(async move { link.send(request).await.unwrap().status });
    in_time(lab.faults().wait_for_delayed_requests(1)).await;
    lab.clock.advance(Duration::from_secs(3));
    assert_eq!(in_time(sending).await.unwrap(), 200);
    assert_eq!(lab.east().condition, RegionCondition::Slow);
    east.down(DownMode::Unavailable).unwrap();
    assert_eq!(lab.faults().list().len(), 1);
    assert_eq!(lab.east().condition, RegionCondition::Unavailable);
    lab.faults().clear().unwrap();
    assert_eq!(lab.east().condition, RegionCondition::Up);
}

#[tokio::test]
async fn a_failover_moves_the_writes() {
    let lab = Lab::start().await;
    let mut west = lab.link_to(0, Spoken::Http1).await;
    let mut east = lab.link_to(1, Spoken::Http1).await;
    lab.running.region(EAST).unwrap().fail_over().unwrap();
    let refused = west.send(lab.create("moved")).await.unwrap();
    assert_eq!((refused.status, refused.header("x-ms-substatus")), (403, "3"));
    assert_eq!(east.send(lab.create("moved")).await.unwrap().status, 201);
    let error = lab.running.region("Mars").unwrap_err().to_string();
    assert!(error.contains("Mars") && error.contains(EAST), "{error}");
}
