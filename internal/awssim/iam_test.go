package awssim

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	ststypes "github.com/aws/aws-sdk-go-v2/service/sts/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	iamsim "github.com/clusterawsadm/clusterawsadm/internal/awssim/iam"
)

const stockNodes = "nodes.cluster-api-provider-aws.sigs.k8s.io"

func TestStockProfiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{Page: 2})
		c := iam.NewFromConfig(a.Config())
		out, err := c.GetInstanceProfile(t.Context(), &iam.GetInstanceProfileInput{InstanceProfileName: aws.String(stockNodes)})
		require.NoError(t, err)
		assert.Equal(t, "arn:aws:iam::123456789012:instance-profile/"+stockNodes, *out.InstanceProfile.Arn)
		assert.Equal(t, stockNodes, *out.InstanceProfile.Roles[0].RoleName)
		_, err = c.GetInstanceProfile(t.Context(), &iam.GetInstanceProfileInput{InstanceProfileName: aws.String("none")})
		hasCode(t, err, "NoSuchEntity")
		_, err = c.GetRole(t.Context(), &iam.GetRoleInput{RoleName: aws.String("none")})
		hasCode(t, err, "NoSuchEntity")
		role, err := c.GetRole(t.Context(), &iam.GetRoleInput{RoleName: aws.String(stockNodes)})
		require.NoError(t, err)
		assert.Equal(t, "arn:aws:iam::123456789012:role/"+stockNodes, *role.Role.Arn)
		assert.True(t, of[*iamsim.Service](a).ProfileExists(stockNodes))
		assert.False(t, of[*iamsim.Service](a).ProfileExists("none"))

		pages, n := iam.NewListInstanceProfilesPaginator(c, &iam.ListInstanceProfilesInput{}), 0
		for pages.HasMorePages() {
			out, err := pages.NextPage(t.Context())
			require.NoError(t, err)
			n += len(out.InstanceProfiles)
		}
		assert.Equal(t, 3, n)
		assert.Empty(t, of[*iamsim.Service](a).Inventory(), "every account has them")
		a.Edit(func(s *State) { s.IAM.Roles["mine"] = &Role{Name: "mine"} })
		assert.Equal(t, []string{"Role mine"}, of[*iamsim.Service](a).Inventory())
	})
}

func TestCallsAreMadeInTheAssumedRole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{})
		cfg := a.Config()
		role := "arn:aws:iam::123456789012:role/" + stockNodes
		cfg.Credentials = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), role, func(o *stscreds.AssumeRoleOptions) {
			o.RoleSessionName, o.ExternalID = "session", aws.String("external")
		}))
		chained := cfg.Copy()
		chained.Credentials = aws.NewCredentialsCache(
			stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), "arn:aws:iam::999999999999:role/path/far", func(o *stscreds.AssumeRoleOptions) {
				o.RoleSessionName = "further"
			}),
		)
		out, err := sts.NewFromConfig(chained).GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
		require.NoError(t, err)
		assert.Equal(t, "arn:aws:sts::999999999999:assumed-role/far/further", *out.Arn)
		assert.Equal(t, "999999999999", *out.Account)
		a.Edit(func(s *State) {
			require.Len(t, s.IAM.Assumed, 2)
			assert.Equal(t, "external", s.IAM.Assumed[0].ExternalID)
			assert.Empty(t, s.IAM.Assumed[0].By)
			assert.Equal(t, role, s.IAM.Assumed[1].By)
			assert.EqualValues(t, 900, s.IAM.Assumed[1].Duration)
		})
		var roles []string
		for _, call := range a.Calls() {
			roles = append(roles, call.Operation+" in "+call.Role)
		}
		assert.Equal(t, []string{"AssumeRole in ", "AssumeRole in " + role, "GetCallerIdentity in arn:aws:iam::999999999999:role/path/far"}, roles)
	})
}

func TestAssumeRoleRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{})
		c := sts.NewFromConfig(a.Config())
		assume := func(arn, session string, seconds int32) error {
			_, err := c.AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: &arn, RoleSessionName: &session, DurationSeconds: &seconds})
			return err
		}
		role := "arn:aws:iam::123456789012:role/" + stockNodes
		require.NoError(t, assume(role, "session", 3600))
		hasCode(t, assume(role, "session", 899), "ValidationError")
		hasCode(t, assume(role, "session", 43201), "ValidationError")
		hasCode(t, assume(role, "session", 3601), "ValidationError")
		hasCode(t, assume(role, "a session", 3600), "ValidationError")
		hasCode(t, assume("arn:aws:iam::123:role/x", "session", 3600), "ValidationError")
		hasCode(t, assume("arn:aws:iam::123456789012:role/none", "session", 3600), "AccessDenied")
		with := func(policy string, arns ...string) error {
			in := &sts.AssumeRoleInput{RoleArn: &role, RoleSessionName: aws.String("session"), Policy: core.Text(policy)}
			for _, arn := range arns {
				in.PolicyArns = append(in.PolicyArns, ststypes.PolicyDescriptorType{Arn: &arn})
			}
			_, err := c.AssumeRole(t.Context(), in)
			return err
		}
		const all = `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}`
		require.NoError(t, with(all, "arn:aws:iam::aws:policy/PowerUserAccess"))
		hasCode(t, with("{"), "MalformedPolicyDocument")
		hasCode(t, with(all+strings.Repeat(" ", 2048)), "ValidationError")
		hasCode(t, with("", "arn:aws:iam::123456789012:policy/none"), "ValidationError")
		hasCode(t, with("", slices.Repeat([]string{"arn:aws:iam::aws:policy/PowerUserAccess"}, 11)...), "ValidationError")
		out, err := c.GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
		require.NoError(t, err)
		assert.Equal(t, Account, *out.Account)
	})
}

func TestServiceQuotas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{Page: 1})
		a.Edit(func(s *State) { s.EC2.Limits.VPCs, s.EC2.Limits.Addresses, s.EC2.Limits.VCPUs = 7, 8, 9 })
		c := servicequotas.NewFromConfig(a.Config())
		value := func(service, code string) float64 {
			out, err := c.GetServiceQuota(t.Context(), &servicequotas.GetServiceQuotaInput{ServiceCode: &service, QuotaCode: &code})
			require.NoError(t, err)
			return *out.Quota.Value
		}
		assert.InDelta(t, 7, value("vpc", "L-F678F1CE"), 0)
		assert.InDelta(t, 8, value("ec2", "L-0263D0A3"), 0)
		assert.InDelta(t, 9, value("ec2", "L-1216C47A"), 0)
		assert.InDelta(t, 5, value("vpc", "L-FE5A380F"), 0)
		assert.InDelta(t, 20, value("elasticloadbalancing", "L-E9E9831D"), 0)
		assert.InDelta(t, 100, value("eks", "L-1194D53C"), 0)
		service, code := "eks", "L-6D54EA21"
		_, err := c.GetServiceQuota(t.Context(), &servicequotas.GetServiceQuotaInput{ServiceCode: &service, QuotaCode: &code})
		hasCode(t, err, "NoSuchResourceException")
		_, err = c.GetServiceQuota(t.Context(), &servicequotas.GetServiceQuotaInput{ServiceCode: aws.String("vpc"), QuotaCode: aws.String("nonsense")})
		hasCode(t, err, "NoSuchResourceException")
		_, err = c.GetServiceQuota(t.Context(), &servicequotas.GetServiceQuotaInput{ServiceCode: aws.String("vpc"), QuotaCode: aws.String("L-12345678")})
		isNotSimulated(t, err)
		pages, n := servicequotas.NewListServiceQuotasPaginator(c, &servicequotas.ListServiceQuotasInput{ServiceCode: aws.String("vpc")}), 0
		for pages.HasMorePages() {
			_, err := pages.NextPage(t.Context())
			require.NoError(t, err)
			n++
		}
		assert.Equal(t, 5, n)
	})
}
