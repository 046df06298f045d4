package fault

import (
	"maps"
	"net/http"
)

// Code is a machine-readable error code. Codes are part of the public contract:
// new ones may be added, existing ones never change.
type Code string

// The codes of the API, grouped by status.
const (
	InvalidJSON    Code = "invalid_json"
	InvalidRequest Code = "invalid_request"
	InvalidCursor  Code = "invalid_cursor"

	Unauthorized       Code = "unauthorized"
	InvalidCredentials Code = "invalid_credentials"

	InsufficientScope Code = "insufficient_scope"
	PlanLimitExceeded Code = "plan_limit_exceeded"
	CrossOrigin       Code = "cross_origin"

	FileStorageExceeded Code = "file_storage_exceeded"

	NotFound           Code = "not_found"
	WorkflowNotFound   Code = "workflow_not_found"
	VersionNotFound    Code = "version_not_found"
	RunNotFound        Code = "run_not_found"
	StepNotFound       Code = "step_not_found"
	WebhookNotFound    Code = "webhook_not_found"
	DeliveryNotFound   Code = "delivery_not_found"
	APIKeyNotFound     Code = "api_key_not_found"
	WorkspaceNotFound  Code = "workspace_not_found"
	ActionNotFound     Code = "action_not_found"
	TemplateNotFound   Code = "template_not_found"
	SecretNotFound     Code = "secret_not_found"
	VariableNotFound   Code = "variable_not_found"
	ConnectionNotFound Code = "connection_not_found"
	OAuthAppNotFound   Code = "oauth_app_not_found"
	TableNotFound      Code = "table_not_found"
	RowNotFound        Code = "row_not_found"
	StateKeyNotFound   Code = "state_key_not_found"
	FileNotFound       Code = "file_not_found"
	UploadNotFound     Code = "upload_not_found"
	TriggerNotFound    Code = "trigger_not_found"

	IntegrationNotFound Code = "integration_not_found"
	IntegrationExists   Code = "integration_exists"
	IntegrationInUse    Code = "integration_in_use"
	IntegrationInvalid  Code = "integration_invalid"

	SessionNotFound    Code = "session_not_found"
	MemberNotFound     Code = "member_not_found"
	InvitationNotFound Code = "invitation_not_found"
	LinkNotFound       Code = "link_not_found"

	MethodNotAllowed Code = "method_not_allowed"

	WorkflowActive        Code = "workflow_active"
	WorkflowPaused        Code = "workflow_paused"
	UpgradeInProgress     Code = "upgrade_in_progress"
	RunNotRunning         Code = "run_not_running"
	RunNotRetryable       Code = "run_not_retryable"
	StepNotWaiting        Code = "step_not_waiting"
	ConnectionInUse       Code = "connection_in_use"
	ConnectionRestricted  Code = "connection_restricted"
	ConnectionExists      Code = "connection_exists"
	ConnectionBroken      Code = "connection_broken"
	TableExists           Code = "table_exists"
	RowExists             Code = "row_exists"
	FileInUse             Code = "file_in_use"
	UploadConflict        Code = "upload_conflict"
	OAuthAppMissing       Code = "oauth_app_missing"
	ConsentExpired        Code = "consent_expired"
	ConsentRefused        Code = "consent_refused"
	WrongHost             Code = "wrong_host"
	ConcurrencyLimit      Code = "concurrency_limit"
	ChainDepthExceeded    Code = "chain_depth_exceeded"
	WebhookDisabled       Code = "webhook_disabled"
	IdempotencyInProgress Code = "idempotency_in_progress"
	LastOwner             Code = "last_owner"
	AlreadyMember         Code = "already_member"

	VersionConflict       Code = "version_conflict"
	TusVersionUnsupported Code = "tus_version_unsupported"

	PayloadTooLarge  Code = "payload_too_large"
	FileTooLarge     Code = "file_too_large"
	RunFilesTooLarge Code = "run_files_too_large"

	UnsupportedMediaType Code = "unsupported_media_type"

	RangeNotSatisfiable Code = "range_not_satisfiable"

	ChecksumMismatch Code = "checksum_mismatch"

	UploadLocked Code = "upload_locked"

	WorkflowInvalid      Code = "workflow_invalid"
	WebhookURLNotAllowed Code = "webhook_url_not_allowed"
	IdempotencyKeyReused Code = "idempotency_key_reused"
	ServiceFailed        Code = "service_failed"

	RateLimited      Code = "rate_limited"
	RunQueueFull     Code = "run_queue_full"
	TooManyStreams   Code = "too_many_streams"
	TooManyUploads   Code = "too_many_uploads"
	TooManyListeners Code = "too_many_listeners"

	Internal  Code = "internal_error"
	RunFailed Code = "run_failed"

	Unavailable     Code = "unavailable"
	StorageReadOnly Code = "storage_read_only"

	StorageFull Code = "storage_full"
)

// Status returns the HTTP status of the code.
func (c Code) Status() int {
	if status, ok := statuses[c]; ok {
		return status
	}
	return http.StatusInternalServerError
}

// Codes returns every code of the API with its status.
func Codes() map[Code]int {
	return maps.Clone(statuses)
}

const statusChecksumMismatch = 460

var statuses = map[Code]int{
	InvalidJSON:           http.StatusBadRequest,
	InvalidRequest:        http.StatusBadRequest,
	InvalidCursor:         http.StatusBadRequest,
	Unauthorized:          http.StatusUnauthorized,
	InsufficientScope:     http.StatusForbidden,
	PlanLimitExceeded:     http.StatusForbidden,
	NotFound:              http.StatusNotFound,
	WorkflowNotFound:      http.StatusNotFound,
	VersionNotFound:       http.StatusNotFound,
	RunNotFound:           http.StatusNotFound,
	StepNotFound:          http.StatusNotFound,
	WebhookNotFound:       http.StatusNotFound,
	DeliveryNotFound:      http.StatusNotFound,
	APIKeyNotFound:        http.StatusNotFound,
	WorkspaceNotFound:     http.StatusNotFound,
	ActionNotFound:        http.StatusNotFound,
	TemplateNotFound:      http.StatusNotFound,
	SecretNotFound:        http.StatusNotFound,
	ConnectionNotFound:    http.StatusNotFound,
	ConnectionInUse:       http.StatusConflict,
	ConnectionRestricted:  http.StatusForbidden,
	OAuthAppNotFound:      http.StatusNotFound,
	OAuthAppMissing:       http.StatusConflict,
	ConsentExpired:        http.StatusConflict,
	ConsentRefused:        http.StatusConflict,
	WrongHost:             http.StatusConflict,
	ConnectionExists:      http.StatusConflict,
	ConnectionBroken:      http.StatusConflict,
	TableNotFound:         http.StatusNotFound,
	RowNotFound:           http.StatusNotFound,
	StateKeyNotFound:      http.StatusNotFound,
	FileNotFound:          http.StatusNotFound,
	FileInUse:             http.StatusConflict,
	UploadNotFound:        http.StatusNotFound,
	UploadConflict:        http.StatusConflict,
	UploadLocked:          http.StatusLocked,
	TusVersionUnsupported: http.StatusPreconditionFailed,
	ChecksumMismatch:      statusChecksumMismatch,
	RangeNotSatisfiable:   http.StatusRequestedRangeNotSatisfiable,
	FileStorageExceeded:   http.StatusForbidden,
	FileTooLarge:          http.StatusRequestEntityTooLarge,
	RunFilesTooLarge:      http.StatusRequestEntityTooLarge,
	TooManyUploads:        http.StatusTooManyRequests,
	TooManyListeners:      http.StatusTooManyRequests,
	TableExists:           http.StatusConflict,
	RowExists:             http.StatusConflict,
	VariableNotFound:      http.StatusNotFound,
	TriggerNotFound:       http.StatusNotFound,
	IntegrationNotFound:   http.StatusNotFound,
	IntegrationExists:     http.StatusConflict,
	IntegrationInUse:      http.StatusConflict,
	IntegrationInvalid:    http.StatusUnprocessableEntity,
	MethodNotAllowed:      http.StatusMethodNotAllowed,
	WorkflowActive:        http.StatusConflict,
	WorkflowPaused:        http.StatusConflict,
	UpgradeInProgress:     http.StatusConflict,
	RunNotRunning:         http.StatusConflict,
	RunNotRetryable:       http.StatusConflict,
	StepNotWaiting:        http.StatusConflict,
	ConcurrencyLimit:      http.StatusConflict,
	ChainDepthExceeded:    http.StatusConflict,
	WebhookDisabled:       http.StatusConflict,
	IdempotencyInProgress: http.StatusConflict,
	InvalidCredentials:    http.StatusUnauthorized,
	CrossOrigin:           http.StatusForbidden,
	SessionNotFound:       http.StatusNotFound,
	MemberNotFound:        http.StatusNotFound,
	InvitationNotFound:    http.StatusNotFound,
	LinkNotFound:          http.StatusNotFound,
	LastOwner:             http.StatusConflict,
	AlreadyMember:         http.StatusConflict,
	VersionConflict:       http.StatusPreconditionFailed,
	PayloadTooLarge:       http.StatusRequestEntityTooLarge,
	UnsupportedMediaType:  http.StatusUnsupportedMediaType,
	WorkflowInvalid:       http.StatusUnprocessableEntity,
	WebhookURLNotAllowed:  http.StatusUnprocessableEntity,
	IdempotencyKeyReused:  http.StatusUnprocessableEntity,
	ServiceFailed:         http.StatusUnprocessableEntity,
	RateLimited:           http.StatusTooManyRequests,
	RunQueueFull:          http.StatusTooManyRequests,
	TooManyStreams:        http.StatusTooManyRequests,
	Internal:              http.StatusInternalServerError,
	RunFailed:             http.StatusInternalServerError,
	Unavailable:           http.StatusServiceUnavailable,
	StorageReadOnly:       http.StatusServiceUnavailable,
	StorageFull:           http.StatusInsufficientStorage,
}
