package http

import "time"

// NewTransport is the transport of the http tool on connections that dial
// makes.
var NewTransport = newTransport

// UsableUntil is until when a token is used that was asked for at one time and
// ends at another.
func UsableUntil(asked, ends time.Time) time.Time { return usableUntil(asked, ends) }
