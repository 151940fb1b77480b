package cloud

import "context"

// Inspecting returns a context in which no call is sent, not even one that reads: inspect gets its service, operation and
// input instead, and the call returns a RefusedError. A call whose input lacks a required member returns the error of the
// SDK before.
func Inspecting(ctx context.Context, inspect func(service, operation string, input any)) context.Context {
	return context.WithValue(ReadOnly(ctx), inspectKey, inspect)
}

// inspected passes a call to the function of Inspecting, and reports whether there is one.
func inspected(ctx context.Context, service, operation string, input any) bool {
	inspect, is := ctx.Value(inspectKey).(func(service, operation string, input any))
	if is {
		inspect(service, operation, input)
	}
	return is
}
