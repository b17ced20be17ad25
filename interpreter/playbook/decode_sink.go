package playbook

import "gopkg.in/yaml.v3"

// sink reads a sink; place names it within the playbook.
func (d *decoder) sink(n *yaml.Node, place string) *Sink {
	f, ok := d.fields(n, sinkSection, "a sink")
	if !ok {
		return nil
	}
	d.require(f, "a sink", "tool", "tool: postgres")
	s := &Sink{Pos: f.pos, Place: place, Action: d.action(f, "a sink")}
	if n := f.get("retry"); n != nil {
		s.Action.Retry = d.retry(n, place+".retry", literalTool(s.Action))
	}
	return s
}

// innerSink reads a map whose one key is a sink.
func (d *decoder) innerSink(n *yaml.Node, section *section, what, place string) *Sink {
	f, ok := d.fields(n, section, what)
	if !ok || !d.require(f, what, "sink", "sink: {tool: postgres, …}") {
		return nil
	}
	return d.sink(f.get("sink"), place)
}
