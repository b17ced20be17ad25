package postgres

// NotOlder is for tests.
var NotOlder = notOlder
