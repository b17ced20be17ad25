package playbook

var sinkSection = sectionOf(section{name: "sink", called: "a sink", open: true, fields: olderFields}, withCall((*Sink).action, []keyOf[Sink]{
	accept(key{name: "tool", older: []string{"type", "storage"}, doc: "the tool that writes", required: "tool: postgres"},
		asPart[Sink](WordTool)),
	accept(key{name: "retry", doc: "policies for the sink's own failures"}, asRetry(func(s *Sink, policies []*Policy) { s.Action.Retry = policies })),
	accept(key{name: "args", older: []string{"data"}, doc: argsKey.doc, nullable: true}, through((*Sink).action, argsKey.into)),
}))

func (s *Sink) action() *Action { return s.Action }

// innerSink is how to write the one word of a section that holds a sink.
const innerSink = "sink: {tool: postgres, …}"

func (*Sink) section() *section { return sinkSection }

// decode reads a sink; the place names it within the playbook.
func (s *Sink) decode(d *decoder, f *fields, where at) bool {
	*s = Sink{Pos: f.pos, Place: where.place, Action: d.action(f, f.path)}
	where.tool = literalTool(s.Action)
	d.words(f, s, where)
	return true
}
