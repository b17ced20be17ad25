package serve

import (
	"net/http"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// AnswersOfOne is answersOfOne.
const AnswersOfOne = answersOfOne

// What the tests of single parts need.
var (
	Verify     = verify
	ReadJSON   = readJSON
	ReadAnswer = readAnswer
)

// ReadDelivery gives the ID of a delivery and the workload that it becomes.
func ReadDelivery(trigger *playbook.Trigger, header http.Header, body []byte) (string, any, error) {
	read, err := readDelivery(trigger, header, body)
	return read.id, read.trigger, err
}

// Encodes reports whether a value can be part of a run.
func Encodes(value any) bool {
	_, err := expression.Encode(value)
	return err == nil
}

// QueryOf are the query parameters of each route; those of pages, which take any, are
// not there.
func (s *Server) QueryOf() map[string][]string {
	all := map[string][]string{}
	for _, route := range s.routes() {
		if !route.page {
			all[route.method+" "+route.path] = route.query
		}
	}
	return all
}

// Routes are the methods and paths of a server.
func (s *Server) Routes() []string {
	var all []string
	for _, route := range s.routes() {
		all = append(all, route.method+" "+route.path)
	}
	return all
}
