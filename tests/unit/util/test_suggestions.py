from agent_mux._util.suggestions import closest_names, did_you_mean

NAMES = ["timeout", "inactivity_timeout", "tags"]


def test_the_nearest_name_is_suggested() -> None:
    assert did_you_mean("timout", NAMES, "see the list") == "did you mean 'timeout'?"


def test_without_a_similar_name_the_alternative_is_returned() -> None:
    assert did_you_mean("zebra", NAMES, "see the list") == "see the list"
    assert did_you_mean("x", [], "known: none") == "known: none"


def test_several_names_are_returned_by_similarity() -> None:
    assert closest_names("timeouts", ["timed", *NAMES], limit=2) == ["timeout", "timed"]
    assert closest_names("timeouts", ["timed", *NAMES], limit=2, similarity=0.9) == ["timeout"]
