package model

import "maps"

// Only returns a model with some operations, and with the shapes that they use.
func (s *Service) Only(operations []string) *Service {
	out := &Service{Metadata: s.Metadata, Operations: map[string]Operation{}, Shapes: map[string]Shape{}}
	for _, name := range operations {
		op, ok := s.Operations[name]
		if !ok {
			continue
		}
		out.Operations[name] = op
		s.copyTo(out.Shapes, op.Input, op.Output)
		s.copyTo(out.Shapes, op.Errors...)
	}
	return out
}

// copyTo copies shapes, and those that they refer to.
func (s *Service) copyTo(to map[string]Shape, from ...Member) {
	for _, m := range from {
		if _, done := to[m.Shape]; done || m.Shape == "" {
			continue
		}
		shape := s.Shapes[m.Shape]
		to[m.Shape] = shape
		s.copyTo(to, shape.Item, shape.Key, shape.Value)
		for member := range maps.Values(shape.Members) {
			s.copyTo(to, member)
		}
	}
}
