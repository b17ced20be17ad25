// Package docs keeps the documentation correct. It generates the parts that follow
// from the code (tables of keys, functions, codes and tools), and finds the
// examples, which tests check and run.
//
//	go run ./internal/test/docs/generate
package docs
