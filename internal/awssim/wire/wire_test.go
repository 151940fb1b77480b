package wire_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/wire/model"
)

// signature is a header as clients send it, for a service.
func signature(service string) string {
	return "AWS4-HMAC-SHA256 Credential=any/20261124/us-east-1/" + service + "/aws4_request, SignedHeaders=host, Signature=00"
}

// form is a request of a query protocol.
func form(t *testing.T, service, body string) *http.Request {
	t.Helper()
	r := rest(t, service, http.MethodPost, "/", body)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	return r
}

// object is a request of a JSON protocol.
func object(t *testing.T, service, target, body string) *http.Request {
	t.Helper()
	r := rest(t, service, http.MethodPost, "/", body)
	r.Header.Set("X-Amz-Target", target)
	return r
}

// rest is a request of a REST protocol, without a signature if the service is "".
func rest(t *testing.T, service, method, uri, body string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, uri, strings.NewReader(body))
	if service != "" {
		r.Header.Set("Authorization", signature(service))
	}
	return r
}

// serial matches the ID of a request.
var serial = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// TestAnswers checks status and body of requests, byte by byte.
func TestAnswers(t *testing.T) {
	h, err := awssim.New(awssim.Options{}).Process().Handler()
	require.NoError(t, err)
	const caller = `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult><Account>123456789012</Account>` +
		`<Arn>arn:aws:iam::123456789012:user/simulated</Arn><UserId>AIDASIMULATEDSIMULATE</UserId></GetCallerIdentityResult><ResponseMetadata><RequestId>ID</RequestId></ResponseMetadata></GetCallerIdentityResponse>`
	md5 := rest(t, "s3", http.MethodPut, "/a-bucket/key", "text")
	md5.Header.Set("Content-Md5", "AAAA")
	for name, c := range map[string]struct {
		request *http.Request
		status  int
		body    string
	}{
		"EC2: error": {
			form(t, "ec2", "Action=DescribeVpcs&Version=2016-11-15&VpcId.1=vpc-1"), 400,
			"<Response><Errors><Error><Code>InvalidVpcID.NotFound</Code><Message>the vpc ID &#39;vpc-1&#39; does not exist</Message></Error></Errors><RequestID>ID</RequestID></Response>",
		},
		"EC2: parameter that is not in the model": {
			form(t, "ec2", "Action=DescribeVpcs&Version=2016-11-15&Nonsense=1"), 501,
			"<Response><Errors><Error><Code>NotSimulated</Code><Message>parameter Nonsense is not simulated</Message></Error></Errors><RequestID>ID</RequestID></Response>",
		},
		"EC2: parameter that the simulation does not have": {
			form(t, "ec2", "Action=DescribeVpcs&Version=2016-11-15&DryRun=true"), 501,
			"<Response><Errors><Error><Code>NotSimulated</Code><Message>EC2 DescribeVpcs: parameter DryRun is not simulated</Message></Error></Errors><RequestID>ID</RequestID></Response>",
		},
		"EC2: operation that is not simulated": {
			form(t, "ec2", "Action=AcceptAddressTransfer&Version=2016-11-15"), 501,
			"<Response><Errors><Error><Code>NotSimulated</Code><Message>EC2 AcceptAddressTransfer is not simulated</Message></Error></Errors><RequestID>ID</RequestID></Response>",
		},
		"EC2: no number": {
			form(t, "ec2", "Action=DescribeVpcs&Version=2016-11-15&MaxResults=many"), 400,
			"<Response><Errors><Error><Code>MalformedInput</Code><Message>&#34;many&#34; is not a int32</Message></Error></Errors><RequestID>ID</RequestID></Response>",
		},
		"query: error": {
			form(t, "iam", "Action=GetRole&Version=2010-05-08&RoleName=nobody"), 404,
			"<ErrorResponse><Error><Type>Sender</Type><Code>NoSuchEntity</Code><Message>The role with name nobody cannot be found.</Message></Error><RequestId>ID</RequestId></ErrorResponse>",
		},
		"query: without a signature": {form(t, "", "Action=GetCallerIdentity&Version=2011-06-15"), 200, caller},
		"query: presigned": {
			httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Credential=any%2F20261124%2Fus-east-1%2Fsts%2Faws4_request&X-Amz-Expires=60", nil),
			200, caller,
		},
		"query: two services of one name": {
			form(t, "elasticloadbalancing", "Action=DescribeLoadBalancers&Version=2012-06-01"), 200,
			`<DescribeLoadBalancersResponse xmlns="http://elasticloadbalancing.amazonaws.com/doc/2012-06-01/"><DescribeLoadBalancersResult><LoadBalancerDescriptions></LoadBalancerDescriptions></DescribeLoadBalancersResult><ResponseMetadata><RequestId>ID</RequestId></ResponseMetadata></DescribeLoadBalancersResponse>`,
		},
		"JSON: error": {
			object(t, "ssm", "AmazonSSM.GetParameter", `{"Name": "/a"}`), 400, `{"__type":"ParameterNotFound","message":"/a"}`,
		},
		"JSON: member that is not in the model": {
			object(t, "ssm", "AmazonSSM.GetParameter", `{"Nonsense": 1}`), 501, `{"__type":"NotSimulated","message":"parameter Nonsense is not simulated"}`,
		},
		"JSON: no JSON": {
			object(t, "ssm", "AmazonSSM.GetParameter", `{`), 400, `{"__type":"SerializationException","message":"unexpected EOF"}`,
		},
		"REST with JSON: error": {
			rest(t, "eks", http.MethodGet, "/clusters/a", ""), 404, `{"__type":"ResourceNotFoundException","clusterName":"a","message":"No cluster found for name: a."}`,
		},
		"REST with JSON: operation that is not simulated": {
			rest(t, "eks", http.MethodGet, "/insights", ""), 501, `{"__type":"NotSimulated","message":"EKS GET /insights is not simulated"}`,
		},
		"REST with XML: error": {
			rest(t, "s3", http.MethodGet, "/a-bucket/a/key?x-id=GetObject", ""), 404,
			`<?xml version="1.0" encoding="UTF-8"?><Error><Code>NoSuchBucket</Code><Message>The specified bucket does not exist</Message><RequestId>ID</RequestId></Error>`,
		},
		"REST with XML: parameter that is not in the model": {
			rest(t, "s3", http.MethodPut, "/a-bucket?acl", ""), 501,
			`<?xml version="1.0" encoding="UTF-8"?><Error><Code>NotSimulated</Code><Message>CreateBucket: parameter acl is not simulated</Message><RequestId>ID</RequestId></Error>`,
		},
		"REST with XML: wrong checksum": {
			md5, 400,
			`<?xml version="1.0" encoding="UTF-8"?><Error><Code>BadDigest</Code><Message>the Content-Md5 of the request is not that of its body</Message><RequestId>ID</RequestId></Error>`,
		},
		"service that is not simulated": {
			object(t, "dynamodb", "DynamoDB_20120810.ListTables", `{}`), 501, `{"__type":"NotSimulated","message":"the service \"dynamodb\" is not simulated"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, c.request)
			assert.Equal(t, c.status, w.Code, w.Body.String())
			assert.Equal(t, c.body, serial.ReplaceAllString(w.Body.String(), "ID"))
			assert.NotEmpty(t, w.Header().Get("X-Amzn-Requestid")+w.Header().Get("X-Amz-Request-Id"))
		})
	}
}

// TestModels checks that the models have every operation that is simulated, and every
// member that it supports.
func TestModels(t *testing.T) {
	models, err := model.Load()
	require.NoError(t, err)
	for _, op := range awssim.New(awssim.Options{}).Process().Operations() {
		s := models[op.Package]
		require.NotNil(t, s, op.Package)
		model, ok := s.Operations[op.Name]
		require.True(t, ok, "%s %s: go generate ./internal/awssim/wire/model", op.Package, op.Name)
		members := s.Shapes[model.Input.Shape].Members
		for _, f := range op.Fields {
			_, small := members[strings.ToLower(f[:1])+f[1:]]
			_, same := members[f]
			assert.True(t, small || same, "%s %s: the model does not have %s", op.Package, op.Name, f)
		}
	}
}
