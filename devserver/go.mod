module reprise/devserver

go 1.26.8

require (
	github.com/temporalio/ui-server/v2 v2.55.0 // indirect
	go.temporal.io/server v1.32.1 // indirect
)
