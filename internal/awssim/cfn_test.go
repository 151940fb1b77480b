package awssim

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	cfn "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	cloudformationsim "github.com/clusterawsadm/clusterawsadm/internal/awssim/cloudformation"
)

const (
	testTrust = "AssumeRolePolicyDocument: {Version: 2012-10-17, Statement: [{Effect: Allow, Principal: {Service: [ec2.amazonaws.com]}, Action: sts:AssumeRole}]}"
	testAllow = "PolicyDocument: {Version: 2012-10-17, Statement: [{Effect: Allow, Action: ['ec2:RunInstances'], Resource: ['*']}]}"

	testTemplate = `AWSTemplateFormatVersion: 2010-09-09
Resources:
  Profile: {Type: AWS::IAM::InstanceProfile, Properties: {InstanceProfileName: p, Roles: [!Ref Role]}}
  Policy:
    Type: AWS::IAM::ManagedPolicy
    Properties: {ManagedPolicyName: m, Roles: [{Ref: Role}], Groups: [{Ref: Group}], ` + testAllow + `}
  Role: {Type: AWS::IAM::Role, Properties: {RoleName: r, ` + testTrust + `}}
  Group: {Type: AWS::IAM::Group, Properties: {GroupName: g}}
  User: {Type: AWS::IAM::User, Properties: {UserName: u, Groups: [!Ref Group], ManagedPolicyArns: [!Sub "arn:${AWS::Partition}:iam::aws:policy/ReadOnlyAccess"]}}
`
)

// stackbed is an empty account with clients.
type stackbed struct {
	t   *testing.T
	aws *AWS
	cfn *cfn.Client
	iam *iam.Client
}

func inStack(t *testing.T, o Options, test func(t *testing.T, b *stackbed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o.Bare = true
		a := New(o)
		test(t, &stackbed{t, a, cfn.NewFromConfig(patient(a.Config())), iam.NewFromConfig(patient(a.Config()))})
	})
}

func (b *stackbed) create(body string) error {
	_, err := b.cfn.CreateStack(
		b.t.Context(),
		&cfn.CreateStackInput{StackName: aws.String("s"), TemplateBody: &body, Capabilities: []types.Capability{types.CapabilityCapabilityNamedIam}},
	)
	return err
}

func (b *stackbed) update(body string, tags ...types.Tag) error {
	_, err := b.cfn.UpdateStack(
		b.t.Context(),
		&cfn.UpdateStackInput{StackName: aws.String("s"), TemplateBody: &body, Tags: tags, Capabilities: []types.Capability{types.CapabilityCapabilityNamedIam}},
	)
	return err
}

func (b *stackbed) delete() error {
	_, err := b.cfn.DeleteStack(b.t.Context(), &cfn.DeleteStackInput{StackName: aws.String("s")})
	return err
}

func (b *stackbed) status() string {
	out, err := b.cfn.DescribeStacks(b.t.Context(), &cfn.DescribeStacksInput{StackName: aws.String("s")})
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(out.Stacks[0].StackStatus) + " " + aws.ToString(out.Stacks[0].StackStatusReason))
}

// events returns the events since the last call, the oldest first.
func (b *stackbed) events(from int) (lines []string) {
	b.aws.Edit(func(s *State) {
		for _, x := range s.CloudFormation.Stacks {
			for _, e := range x.Events[from:] {
				lines = append(lines, strings.TrimSpace(e.Logical+" "+string(e.Status)+" "+e.Reason))
			}
		}
	})
	return lines
}

func TestStackIsMadeInTheOrderOfItsReferences(t *testing.T) {
	inStack(t, Options{}, func(t *testing.T, b *stackbed) {
		require.NoError(t, b.create(testTemplate))
		assert.Equal(t, "CREATE_IN_PROGRESS User Initiated", b.status())
		hasCode(t, b.create(testTemplate), "AlreadyExistsException")
		hasCode(t, b.update(testTemplate), "ValidationError")
		time.Sleep(cloudformationsim.ResourceTakesMost + cloudformationsim.ResourceAsks)
		_, err := b.iam.GetRole(t.Context(), &iam.GetRoleInput{RoleName: aws.String("r")})
		require.NoError(t, err)
		time.Sleep(cloudformationsim.ProfileTakes - 10*time.Second)
		assert.Equal(t, "CREATE_IN_PROGRESS User Initiated", b.status(), "an instance profile takes two minutes, and comes after its role")
		time.Sleep(30 * time.Second)
		assert.Equal(t, "CREATE_COMPLETE", b.status())
		events := b.events(0)
		assert.Equal(
			t,
			[]string{
				"s CREATE_IN_PROGRESS User Initiated",
				"Group CREATE_IN_PROGRESS",
				"Role CREATE_IN_PROGRESS",
				"Group CREATE_IN_PROGRESS Resource creation Initiated",
			},
			events[:4],
		)
		assert.Equal(t, []string{"Profile CREATE_COMPLETE", "s CREATE_COMPLETE"}, events[len(events)-2:])
		assert.Equal(t, []string{"Group g", "InstanceProfile p", "Policy m", "Role r", "Stack s", "User u"}, b.aws.Inventory())
		assert.Contains(t, strings.Join(b.aws.Detailed(), "\n"), "User u attached=arn:aws:iam::aws:policy/ReadOnlyAccess")

		resources, err := b.cfn.DescribeStackResources(
			t.Context(),
			&cfn.DescribeStackResourcesInput{PhysicalResourceId: aws.String("arn:aws:iam::123456789012:policy/m")},
		)
		require.NoError(t, err)
		assert.Len(t, resources.StackResources, 5)

		require.NoError(t, b.delete())
		time.Sleep(time.Minute)
		assert.Contains(t, b.status(), "Stack with id s does not exist")
		assert.Empty(t, b.aws.Inventory())
		require.NoError(t, b.delete(), "what is gone can be deleted")
	})
}

func TestStackRollsBack(t *testing.T) {
	inStack(t, Options{}, func(t *testing.T, b *stackbed) {
		b.aws.Edit(func(s *State) { s.IAM.Roles["r"] = &Role{Name: "r"} })
		require.NoError(t, b.create(testTemplate))
		time.Sleep(cloudformationsim.ResourceAsks)
		assert.Equal(t, "ROLLBACK_IN_PROGRESS The following resource(s) failed to create: [Role]. Rollback requested by user.", b.status())
		time.Sleep(time.Minute)
		assert.Equal(t, "ROLLBACK_COMPLETE", b.status())
		assert.Contains(t, b.events(0), `Role CREATE_FAILED Resource handler returned message: "Role with name r already exists. (Service: Iam)"`)
		assert.Contains(t, b.events(0), "Group CREATE_FAILED Resource creation cancelled")
		assert.Equal(t, []string{"Role r", "Stack s"}, b.aws.Inventory(), "somebody else's role stays")
		hasCode(t, b.update(testTemplate), "ValidationError")
		require.NoError(t, b.delete())
		assert.Contains(t, b.status(), "does not exist")
	})
}

func TestStackUpdates(t *testing.T) {
	inStack(t, Options{}, func(t *testing.T, b *stackbed) {
		require.NoError(t, b.create(testTemplate))
		time.Sleep(5 * time.Minute)
		err := b.update(testTemplate + "\n# a comment\n")
		require.ErrorContains(t, err, "No updates are to be performed.")
		hasCode(t, err, "ValidationError")

		before := len(b.events(0))
		changed := strings.NewReplacer("ec2:RunInstances", "ec2:StopInstances", "UserName: u", "UserName: v").Replace(testTemplate)
		require.NoError(t, b.update(changed))
		time.Sleep(time.Minute)
		assert.Equal(t, "UPDATE_COMPLETE", b.status())
		assert.Equal(t, []string{
			"s UPDATE_IN_PROGRESS User Initiated",
			"Policy UPDATE_IN_PROGRESS",
			"User UPDATE_IN_PROGRESS",
			"User UPDATE_IN_PROGRESS Resource creation Initiated",
			"Policy UPDATE_COMPLETE",
			"User UPDATE_COMPLETE",
			"s UPDATE_COMPLETE_CLEANUP_IN_PROGRESS",
			"User DELETE_IN_PROGRESS",
			"User DELETE_COMPLETE",
			"s UPDATE_COMPLETE",
		}, sortedSame(b.events(before)))
		policy, err := b.iam.GetPolicy(t.Context(), &iam.GetPolicyInput{PolicyArn: aws.String("arn:aws:iam::123456789012:policy/m")})
		require.NoError(t, err)
		assert.Equal(t, "v2", *policy.Policy.DefaultVersionId)
		assert.EqualValues(t, 2, *policy.Policy.AttachmentCount)

		require.NoError(t, b.update(changed, types.Tag{Key: aws.String("team"), Value: aws.String("red")}), "tags alone are a change")
		time.Sleep(time.Minute)
		role, err := b.iam.GetRole(t.Context(), &iam.GetRoleInput{RoleName: aws.String("r")})
		require.NoError(t, err)
		assert.Equal(t, "team", *role.Role.Tags[0].Key)

		smaller := changed[:strings.Index(changed, "  User:")]
		require.NoError(t, b.update(smaller))
		time.Sleep(time.Minute)
		assert.Equal(t, "UPDATE_COMPLETE", b.status())
		assert.NotContains(t, b.aws.Inventory(), "User v")
	})
}

// sortedSame sorts events at the same time, whose order may vary.
func sortedSame(lines []string) []string {
	for i := range lines[1:] {
		if strings.HasPrefix(lines[i], "User UPDATE_COMPLETE") && strings.HasPrefix(lines[i+1], "Policy UPDATE_COMPLETE") {
			lines[i], lines[i+1] = lines[i+1], lines[i]
		}
	}
	return lines
}

func TestUpdateRollsBack(t *testing.T) {
	inStack(t, Options{}, func(t *testing.T, b *stackbed) {
		require.NoError(t, b.create(testTemplate))
		time.Sleep(5 * time.Minute)
		before := b.aws.Detailed()
		wrong := strings.Replace(
			testTemplate,
			"Resource: ['*']",
			"Resource: ['x']",
			1,
		) + "  More: {Type: AWS::IAM::Role, Properties: {RoleName: more, " + testTrust + "}}\n"
		require.NoError(t, b.update(wrong))
		time.Sleep(time.Minute)
		assert.Equal(t, "UPDATE_ROLLBACK_COMPLETE", b.status())
		assert.Contains(t, b.events(0), `Policy UPDATE_FAILED Resource handler returned message: "Resource x must be in ARN format or "*". (Service: Iam)"`)
		after := b.aws.Detailed()
		for i := range after {
			after[i] = strings.Replace(after[i], "UPDATE_ROLLBACK_COMPLETE", "CREATE_COMPLETE", 1)
		}
		assert.Equal(t, before, after)
		require.ErrorContains(t, b.update(testTemplate), "No updates", "the template of before counts again")
		renamed := strings.Replace(testTemplate, "RoleName: r,", "RoleName: r, Path: /x/,", 1)
		require.NoError(t, b.update(renamed))
		time.Sleep(time.Minute)
		assert.Equal(t, "UPDATE_ROLLBACK_COMPLETE", b.status())
		assert.Contains(t, strings.Join(b.events(0), "\n"), "CloudFormation cannot update a stack when a custom-named resource requires replacing. Rename r and")
	})
}

func TestDeletionFailsOnWhatOthersAttached(t *testing.T) {
	inStack(t, Options{}, func(t *testing.T, b *stackbed) {
		require.NoError(t, b.create(testTemplate))
		time.Sleep(5 * time.Minute)
		attach := &iam.AttachRolePolicyInput{RoleName: aws.String("r"), PolicyArn: aws.String("arn:aws:iam::aws:policy/ReadOnlyAccess")}
		_, err := b.iam.AttachRolePolicy(t.Context(), attach)
		require.NoError(t, err)
		require.NoError(t, b.delete())
		time.Sleep(time.Minute)
		assert.Equal(t, "DELETE_FAILED The following resource(s) failed to delete: [Role].", b.status())
		assert.Equal(t, []string{"Role r", "Stack s"}, b.aws.Inventory())
		_, err = b.iam.DetachRolePolicy(t.Context(), &iam.DetachRolePolicyInput{RoleName: attach.RoleName, PolicyArn: attach.PolicyArn})
		require.NoError(t, err)
		require.NoError(t, b.delete())
		time.Sleep(time.Minute)
		assert.Empty(t, b.aws.Inventory())
	})
}

func TestChangeSets(t *testing.T) {
	inStack(t, Options{Page: 1}, func(t *testing.T, b *stackbed) {
		require.NoError(t, b.create(testTemplate))
		time.Sleep(5 * time.Minute)
		changed := strings.NewReplacer("RoleName: r,", "RoleName: s,", "UserName: u,", "UserName: u, Path: /x/,").Replace(testTemplate)
		change := func(name, body string) {
			_, err := b.cfn.CreateChangeSet(t.Context(), &cfn.CreateChangeSetInput{
				StackName: aws.String("s"), ChangeSetName: &name, TemplateBody: &body, Capabilities: []types.Capability{types.CapabilityCapabilityNamedIam},
			})
			require.NoError(t, err)
		}
		describe := func(name string) *cfn.DescribeChangeSetOutput {
			out, err := b.cfn.DescribeChangeSet(t.Context(), &cfn.DescribeChangeSetInput{StackName: aws.String("s"), ChangeSetName: &name})
			require.NoError(t, err)
			return out
		}
		change("c", changed)
		assert.Equal(t, types.ChangeSetStatusCreateInProgress, describe("c").Status)
		time.Sleep(cloudformationsim.ChangeSetTakes)
		pages, lines := cfn.NewDescribeChangeSetPaginator(b.cfn, &cfn.DescribeChangeSetInput{StackName: aws.String("s"), ChangeSetName: aws.String("c")}), []string{}
		for pages.HasMorePages() {
			out, err := pages.NextPage(t.Context())
			require.NoError(t, err)
			for _, c := range out.Changes {
				lines = append(lines, *c.ResourceChange.LogicalResourceId+" "+string(c.ResourceChange.Action)+" "+string(c.ResourceChange.Replacement))
			}
		}
		assert.Equal(t, []string{"Policy Modify False", "Profile Modify False", "Role Modify True", "User Modify False"}, lines)
		change("same", testTemplate)
		time.Sleep(cloudformationsim.ChangeSetTakes)
		assert.Equal(t, types.ChangeSetStatusFailed, describe("same").Status)
		assert.Contains(t, *describe("same").StatusReason, "didn't contain changes")
		_, err := b.cfn.DeleteChangeSet(t.Context(), &cfn.DeleteChangeSetInput{StackName: aws.String("s"), ChangeSetName: aws.String("c")})
		require.NoError(t, err)
		_, err = b.cfn.DescribeChangeSet(t.Context(), &cfn.DescribeChangeSetInput{StackName: aws.String("s"), ChangeSetName: aws.String("c")})
		hasCode(t, err, "ChangeSetNotFound")
		require.NoError(t, b.delete())
		time.Sleep(time.Minute)

		body := testTemplate
		_, err = b.cfn.CreateChangeSet(t.Context(), &cfn.CreateChangeSetInput{
			StackName: aws.String("s"), ChangeSetName: aws.String("new"), TemplateBody: &body, ChangeSetType: types.ChangeSetTypeCreate,
			Capabilities: []types.Capability{types.CapabilityCapabilityNamedIam},
		})
		require.NoError(t, err)
		assert.Equal(t, "REVIEW_IN_PROGRESS User Initiated", b.status())
		hasCode(t, b.create(testTemplate), "AlreadyExistsException")
		require.NoError(t, b.delete())
		assert.Empty(t, b.aws.Inventory())
	})
}

func TestTemplatesThatAreRefused(t *testing.T) {
	inStack(t, Options{}, func(t *testing.T, b *stackbed) {
		resource := func(text string) string { return "Resources: {X: " + text + "}" }
		for body, want := range map[string]string{
			"":              "Either Template URL or Template Body must be specified",
			"Resources: {}": "At least one Resources member",
			"Resources: [":  "YAML not well-formed",
			"{}":            "At least one Resources member",
			"Nonsense: {}":  "Invalid template property or properties [Nonsense]",
			resource("{}"):  "must contain a Type member",
			resource("{Type: AWS::IAM::Group, Properties: {GroupName: null}}"):       "[/Resources/X/Properties/GroupName] 'null' values are not allowed in templates",
			resource("{Type: AWS::IAM::User, Properties: {Groups: [!Ref Y]}}"):       "Unresolved resource dependencies [Y]",
			resource("{Type: AWS::IAM::User, Properties: {Groups: [!Ref X]}}"):       "Circular dependency between resources: [X]",
			resource("{Type: AWS::S3::Bucket}"):                                      "the resource type AWS::S3::Bucket is not simulated",
			resource("{Type: AWS::IAM::User, Properties: {UserName: !Join [a, b]}}"): "Fn::Join in this form is not simulated",
			"Outputs: {}":              "the section Outputs of a template is not simulated",
			strings.Repeat("#", 51201): "less than or equal to 51200",
		} {
			require.ErrorContains(t, b.create(body), want)
		}
		_, err := b.cfn.CreateStack(t.Context(), &cfn.CreateStackInput{StackName: aws.String("s"), TemplateBody: aws.String(testTemplate)})
		require.ErrorContains(t, err, "Requires capabilities : [CAPABILITY_NAMED_IAM]")
		hasCode(t, err, "InsufficientCapabilitiesException")
		_, err = b.cfn.CreateStack(t.Context(), &cfn.CreateStackInput{StackName: aws.String("1_x"), TemplateBody: aws.String(testTemplate)})
		hasCode(t, err, "ValidationError")
		assert.Empty(t, b.aws.Inventory())

		require.NoError(t, b.create(resource("{Type: AWS::IAM::Group, Properties: {Colour: red}}")))
		time.Sleep(time.Minute)
		assert.Contains(t, strings.Join(b.events(0), "\n"), "Encountered unsupported property Colour")
	})
}

// A request with a used client token is the same request.
func TestTokensOfStacks(t *testing.T) {
	inStack(t, Options{}, func(t *testing.T, b *stackbed) {
		in := &cfn.CreateStackInput{
			StackName: aws.String(
				"s",
			),
			TemplateBody:       aws.String(testTemplate),
			ClientRequestToken: aws.String("one"),
			Capabilities:       []types.Capability{types.CapabilityCapabilityNamedIam},
		}
		first, err := b.cfn.CreateStack(t.Context(), in)
		require.NoError(t, err)
		again, err := b.cfn.CreateStack(t.Context(), in)
		require.NoError(t, err)
		assert.Equal(t, *first.StackId, *again.StackId)
		in.ClientRequestToken = aws.String("two")
		_, err = b.cfn.CreateStack(t.Context(), in)
		hasCode(t, err, "AlreadyExistsException")
		events, err := b.cfn.DescribeStackEvents(t.Context(), &cfn.DescribeStackEventsInput{StackName: first.StackId})
		require.NoError(t, err)
		assert.Equal(t, "one", *events.StackEvents[0].ClientRequestToken)
	})
}

func TestStackSurvivesAFile(t *testing.T) {
	inStack(t, Options{}, func(t *testing.T, b *stackbed) {
		require.NoError(t, b.create(testTemplate))
		time.Sleep(10 * time.Second)
		var file bytes.Buffer
		require.NoError(t, b.aws.Save(&file))
		loaded, err := Load(&file, Options{Bare: true})
		require.NoError(t, err)
		b.aws, b.cfn = loaded, cfn.NewFromConfig(loaded.Config())
		time.Sleep(5 * time.Minute)
		assert.Equal(t, "CREATE_COMPLETE", b.status())
		require.ErrorContains(t, b.update(testTemplate), "No updates are to be performed.")
		require.NoError(t, b.delete())
		time.Sleep(time.Minute)
		assert.Empty(t, loaded.Inventory())
	})
}

func TestStockStack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stockStack(t, New(Options{}), 6)
		stockStack(t, New(Options{EKSRoles: true, Region: "cn-north-1"}), 9)
	})
}

func stockStack(t *testing.T, a *AWS, size int) {
	t.Helper()
	out, err := cfn.NewFromConfig(a.Config()).DescribeStacks(t.Context(), &cfn.DescribeStacksInput{StackName: aws.String(cloudformationsim.BootstrapStack)})
	require.NoError(t, err)
	assert.Equal(t, types.StackStatusCreateComplete, out.Stacks[0].StackStatus)
	assert.Empty(t, a.Inventory(), "an account begins with it")
	resources, err := cfn.NewFromConfig(a.Config()).
		DescribeStackResources(t.Context(), &cfn.DescribeStackResourcesInput{StackName: aws.String(cloudformationsim.BootstrapStack)})
	require.NoError(t, err)
	assert.Len(t, resources.StackResources, size)
}
