package playbook

var sinkSection = &section{
	name: "sink", called: "a sink", open: true, fields: olderFields,
	keys: append([]key{
		{name: "tool", older: []string{"type", "storage"}, doc: "the tool that writes"},
		{name: "retry", doc: "policies for the sink's own failures"},
		{name: "args", older: []string{"data"}, doc: callKeys[0].doc},
	}, callKeys[1:]...),
}

// innerSink is how to write the one word of a section that holds a sink.
const innerSink = "sink: {tool: postgres, …}"

func (*Sink) section() *section { return sinkSection }

// decode reads a sink; the place names it within the playbook.
func (s *Sink) decode(d *decoder, f *fields, at at) bool {
	d.require(f, "a sink", "tool", "tool: postgres")
	*s = Sink{Pos: f.pos, Place: at.place, Action: d.action(f, "a sink")}
	if n := f.get("retry"); n != nil {
		s.Action.Retry = d.retry(n, at.under("retry"), literalTool(s.Action))
	}
	return true
}
