package serve

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// AnswersOfOne is answersOfOne.
const AnswersOfOne = answersOfOne

// ArrivalCost is arrivalCost.
const ArrivalCost = arrivalCost

// CrowdOut has senders of one letter join a crowd, those in capitals to be kept, and
// gives the places of those that have to go.
func CrowdOut(room int, senders string) string {
	c, gone := newCrowd(room), []int{}
	for i, sender := range senders {
		one := c.addMember(strings.ToLower(string(sender)), 1, func() { gone = append(gone, i) })
		if unicode.IsUpper(sender) {
			c.pinMember(one)
		}
	}
	slices.Sort(gone)
	text := ""
	for _, i := range gone {
		text += strconv.Itoa(i)
	}
	return text
}

// Exports for the tests of single parts.
var (
	Verify     = verifySignature
	ReadJSON   = readJSON
	ReadAnswer = readAnswer
	ReadForm   = readForm
)

// ReadApproval gives the answer to an approval that a page has posted, and the names of
// the inputs that are wrong.
func ReadApproval(approval *playbook.Approval, typed url.Values) (interpreter.Answer, []string) {
	given, faults := readApproval(approval, typed)
	return given, slices.Sorted(maps.Keys(faults))
}

// ApprovalAgain is the page of an approval with what was typed and is wrong.
func ApprovalAgain(approval *playbook.Approval, typed url.Values) (status int, page []byte, err error) {
	_, faults := readApproval(approval, typed)
	found := openAttempt{}
	found.Awaiting = &interpreter.AwaitedDetails{Approval: approval}
	given, err := found.retryPage(typed, faults)
	page, _ = given.body.([]byte)
	return given.status, page, err
}

// Message is what people are asked as HTML.
func Message(approval *playbook.Approval) (string, error) {
	title, page, err := RenderQuestion(approval)
	if title != "" {
		page = "<h1>" + title + "</h1>\n" + page
	}
	return string(page), err
}

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
	for _, route := range s.allRoutes() {
		if !route.page {
			all[route.method+" "+route.path] = route.query
		}
	}
	return all
}

// Routes are the methods and paths of a server.
func (s *Server) Routes() []string {
	var all []string
	for _, route := range s.allRoutes() {
		all = append(all, route.method+" "+route.path)
	}
	return all
}
