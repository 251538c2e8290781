//! Whole regions: down, draining, slow, throttled, and up again.

use perihelion_emulator::faults::{DownMode, RegionCondition, RegionHealth};

use super::*;

const EAST: &str = "East US";

impl FaultFixture {
    fn east(&self) -> RegionHealth {
        self.running.region(EAST).unwrap().health().unwrap()
    }
}

#[tokio::test]
async fn a_refused_region_resets_its_clients_and_comes_back_on_the_same_port() {
    let fixture = FaultFixture::start().await;
    let port = fixture.port(1);
    for protocol in ClientProtocol::ALL {
        let mut connection = fixture.connect_to(1, protocol).await;
        assert_eq!(connection.send(fixture.account()).await.unwrap().status, 200);
        let raw = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        fixture.running.region(EAST).unwrap().down(DownMode::Refused).unwrap();
        let error = TcpStream::connect(("127.0.0.1", port)).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused, "{protocol:?}");
        assert!(connection.send(fixture.account()).await.is_err(), "{protocol:?}");
        connection.closed().await;
        assert_eq!(in_time(until_broken(raw)).await, io::ErrorKind::ConnectionReset);
        assert_eq!(
            fixture.connect(protocol).await.send(fixture.account()).await.unwrap().status,
            200,
            "the others go on"
        );

        fixture.running.region(EAST).unwrap().up().unwrap();
        assert_eq!(fixture.port(1), port);
        assert_eq!(
            fixture.connect_to(1, protocol).await.send(fixture.account()).await.unwrap().status,
            200,
            "{protocol:?}"
        );
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
async fn a_region_fault_with_a_duration_ends_by_itself() {
    let fixture = FaultFixture::start().await;
    for how in [DownMode::Refused, DownMode::BlackHole] {
        fixture.running.region(EAST).unwrap().with_duration(Duration::from_secs(30)).down(how).unwrap();
        fixture.clock.advance(Duration::from_secs(29));
        let report = &fixture.east();
        assert_eq!((report.listens, report.ends_in.unwrap().0), (false, Duration::from_secs(1)), "{how:?}");
        fixture.clock.advance(Duration::from_secs(1));
        in_time(async {
            while !fixture.east().listens {
                tokio::task::yield_now().await;
            }
        })
        .await;
        let response =
            fixture.connect_to(1, ClientProtocol::Http1).await.send(fixture.account()).await.unwrap();
        assert_eq!(response.status, 200, "{how:?}");
        assert_eq!(fixture.east().condition, RegionCondition::Up);
    }
}

#[tokio::test]
async fn a_port_taken_by_another_process_is_reported_and_reopened_once_it_is_free() {
    let fixture = FaultFixture::start().await;
    let port = fixture.port(1);
    let east = fixture.running.region(EAST).unwrap();
    east.down(DownMode::Refused).unwrap();
    let squatter = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    let error = east.up().unwrap_err().to_string();
    assert!(error.contains(&port.to_string()) && error.contains(EAST) && error.contains("stop"), "{error}");
    assert!(fixture.east().problem.is_some());
    drop(squatter);
    in_time(async {
        while !fixture.east().listens {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(
        fixture.connect_to(1, ClientProtocol::Http1).await.send(fixture.account()).await.unwrap().status,
        200
    );
    assert_eq!(fixture.east().problem, None);
}

#[tokio::test]
async fn a_black_hole_region_responds_only_after_it_ends() {
    let fixture = FaultFixture::start().await;
    let port = fixture.port(1);
    for protocol in ClientProtocol::ALL {
        let mut connection = fixture.connect_to(1, protocol).await;
        assert_eq!(connection.send(fixture.account()).await.unwrap().status, 200);
        fixture.running.region(EAST).unwrap().down(DownMode::BlackHole).unwrap();
        let request = fixture.account();
        let mut requested =
            tokio::spawn(async move { connection.send(request).await.map(|response| response.status) });
        assert!(
            tokio::time::timeout(GLANCE, &mut requested).await.is_err(),
            "{protocol:?}: an open one is silent"
        );
        let newcomer = async {
            fixture.try_connect(port, protocol).await?.send(fixture.account()).await.map_err(io::Error::other)
        };
        let mut newcomer = std::pin::pin!(newcomer);
        assert!(
            tokio::time::timeout(GLANCE, newcomer.as_mut()).await.is_err(),
            "{protocol:?}: so is a new one"
        );

        fixture.running.region(EAST).unwrap().up().unwrap();
        assert_eq!(
            in_time(requested).await.unwrap().unwrap(),
            200,
            "{protocol:?}: what was said is heard at last"
        );
        assert_eq!(in_time(newcomer).await.unwrap().status, 200, "{protocol:?}");
    }
}

#[tokio::test]
async fn an_emulator_stops_in_every_region_condition() {
    for how in [DownMode::Refused, DownMode::BlackHole] {
        let fixture = FaultFixture::start().await;
        let mut connection = fixture.connect_to(1, ClientProtocol::Http1).await;
        assert_eq!(connection.send(fixture.account()).await.unwrap().status, 200);
        fixture.running.region(EAST).unwrap().down(how).unwrap();
        in_time(fixture.running.stop()).await;
        connection.closed().await;
    }
}

#[tokio::test]
async fn a_fault_handle_that_outlives_its_emulator_opens_no_ports() {
    let fixture = FaultFixture::start().await;
    let (port, faults) = (fixture.port(1), fixture.faults().clone());
    fixture.running.region(EAST).unwrap().down(DownMode::Refused).unwrap();
    fixture.running.stop().await;
    faults.clear().unwrap();
    let error = TcpStream::connect(("127.0.0.1", port)).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn region_faults_respond_with_the_service_s_statuses_and_messages() {
    let fixture = FaultFixture::start().await;
    let east = fixture.running.region(EAST).unwrap();
    for protocol in ClientProtocol::ALL {
        let mut connection = fixture.connect_to(1, protocol).await;
        east.down(DownMode::Unavailable).unwrap();
        let response = connection.send(fixture.account()).await.unwrap();
        assert_eq!(
            (response.status, &response.body["code"]),
            (503, &json!("ServiceUnavailable")),
            "{protocol:?}"
        );

        east.drain().unwrap();
        let response = connection.send(fixture.account()).await.unwrap();
        assert_eq!((response.status, response.header("x-ms-substatus")), (403, "1008"), "{protocol:?}");
        let expected = json!({
            "code": "Forbidden",
            "message": "Database Account perihelion does not exist",
            "writableLocations": [],
            "readableLocations": [],
            "id": "perihelion",
        });
        assert_eq!(response.body, expected);
        let listed = fixture.connect(protocol).await.send(fixture.account()).await.unwrap().body;
        assert_eq!(listed["readableLocations"].as_array().unwrap().len(), 3, "it is still listed");

        east.storm().unwrap();
        let response = connection.send(fixture.read("there")).await.unwrap();
        assert_eq!((response.status, response.header("x-ms-substatus")), (429, "3200"), "{protocol:?}");
        assert_eq!(response.header("x-ms-retry-after-ms"), "100");

        east.up().unwrap();
        assert_eq!(connection.send(fixture.account()).await.unwrap().status, 200, "{protocol:?}");
    }
}

#[tokio::test]
async fn a_slow_region_responds_late_and_a_second_fault_replaces_the_first() {
    let fixture = FaultFixture::start().await;
    let east = fixture.running.region(EAST).unwrap();
    east.slow(Duration::from_secs(3)).unwrap();
    let mut connection = fixture.connect_to(1, ClientProtocol::Http2).await;
    let request = fixture.account();
    let sending = tokio::spawn(async move { connection.send(request).await.unwrap().status });
    in_time(fixture.faults().wait_for_delayed_requests(1)).await;
    fixture.clock.advance(Duration::from_secs(3));
    assert_eq!(in_time(sending).await.unwrap(), 200);
    assert_eq!(fixture.east().condition, RegionCondition::Slow);
    east.down(DownMode::Unavailable).unwrap();
    assert_eq!(fixture.faults().list().len(), 1);
    assert_eq!(fixture.east().condition, RegionCondition::Unavailable);
    fixture.faults().clear().unwrap();
    assert_eq!(fixture.east().condition, RegionCondition::Up);
}

#[tokio::test]
async fn a_failover_moves_the_writes() {
    let fixture = FaultFixture::start().await;
    let mut west = fixture.connect_to(0, ClientProtocol::Http1).await;
    let mut east = fixture.connect_to(1, ClientProtocol::Http1).await;
    fixture.running.region(EAST).unwrap().fail_over().unwrap();
    let rejected = west.send(fixture.create("moved")).await.unwrap();
    assert_eq!((rejected.status, rejected.header("x-ms-substatus")), (403, "3"));
    assert_eq!(east.send(fixture.create("moved")).await.unwrap().status, 201);
    let error = fixture.running.region("Mars").unwrap_err().to_string();
    assert!(error.contains("Mars") && error.contains(EAST), "{error}");
}
