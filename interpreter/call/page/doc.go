// Package page holds what a call learns from its pages: the collected data, which policies matched, whether a page
// repeats the previous one, and whether the last page may not be the last.
//
// pages.go has Pages and its changes after each page, collect.go the strategies of collecting, cut_short.go
// detects a page that ends a call too early, and travel.go removes what another host of the call does not need.
package page
