package ssm

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// startSession starts a session with a machine whose agent reports. Nothing can connect to its URL.
func (svc *Service) startSession(in *ssm.StartSessionInput) (*ssm.StartSessionOutput, error) {
	target := aws.ToString(in.Target)
	if target == "" || len(target) > 400 {
		return nil, core.Fail("ValidationException", "target has to have 1 to 400 characters")
	}
	svc.update()
	if !svc.online(target) {
		return nil, core.Fail("TargetNotConnected", "%s is not connected.", target)
	}
	id := fmt.Sprintf("clusterawsadm-%017x", svc.NextSerial())
	core.Fill(&svc.state.Sessions)
	svc.state.Sessions[id] = target
	return &ssm.StartSessionOutput{
		SessionId: &id, TokenValue: aws.String(fmt.Sprintf("AAEAA%032x", svc.NextSerial())),
		StreamUrl: aws.String("wss://ssmmessages." + svc.Region + ".amazonaws.com/v1/data-channel/" + id + "?role=publish_subscribe"),
	}, nil
}

func (svc *Service) terminateSession(in *ssm.TerminateSessionInput) (*ssm.TerminateSessionOutput, error) {
	if svc.state.Sessions[aws.ToString(in.SessionId)] == "" {
		return nil, core.Fail("DoesNotExistException", "Session %s does not exist", aws.ToString(in.SessionId))
	}
	return &ssm.TerminateSessionOutput{SessionId: in.SessionId}, nil // it stays in the history
}
