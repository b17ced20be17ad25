// Package page keeps what comes of the pages of a call: what is collected of them, which
// policies they matched, whether one repeats the page before, and whether the last one may
// be no last page.
//
// pages.go has the Pages with what a page changes in them, collect.go the strategies of
// collecting, cut_short.go finds a page that ends a call too early, and travel.go leaves behind
// what another host of the call need not have.
package page
