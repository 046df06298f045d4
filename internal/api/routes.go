package api

import (
	"net/http"

	"github.com/stepmill/stepmill/internal/auth"
)

// register adds every route: pattern, scope, status and function on one line. A
// route cannot be added without a scope. Routes below /v1 are also mounted below
// /ui/v1, for signed-in users.
func (s *Server) register(t *routeTable) {
	handle(t, "GET /v1/workflows", auth.Read, http.StatusOK, s.listWorkflows)
	handle(t, "POST /v1/workflows", auth.Write, http.StatusCreated, s.createWorkflow)
	handlePrepared(t, "POST /v1/workflows/import", auth.Write, http.StatusCreated, s.importWorkflow)
	handle(t, "GET /v1/workflows/{id}", auth.Read, http.StatusOK, s.getWorkflow)
	handle(t, "PATCH /v1/workflows/{id}", auth.Write, http.StatusOK, s.updateWorkflow)
	handle(t, "DELETE /v1/workflows/{id}", auth.Write, http.StatusNoContent, s.deleteWorkflow)
	handleSlow(t, "POST /v1/workflows/{id}/validate", auth.Write, http.StatusOK, s.validateWorkflow)
	handle(t, "GET /v1/workflows/{id}/versions", auth.Read, http.StatusOK, s.listVersions)
	handle(t, "GET /v1/workflows/{id}/versions/{n}", auth.Read, http.StatusOK, s.getVersion)
	handle(t, "GET /v1/workflows/{id}/versions/{n}/diff", auth.Read, http.StatusOK, s.diffVersions)
	handlePrepared(t, "POST /v1/workflows/{id}/versions/{n}/restore", auth.Write, http.StatusOK, s.restoreVersion)
	handle(t, "GET /v1/workflows/{id}/triggers", auth.Read, http.StatusOK, s.listTriggers)
	handle(t, "POST /v1/workflows/{id}/triggers/{trigger_id}/rotate", auth.Write, http.StatusOK, s.rotateTrigger)
	handle(t, "GET /v1/workflows/{id}/triggers/{trigger_id}/requests", auth.Read, http.StatusOK, s.listRequests)
	handlePrepared(t, "POST /v1/workflows/{id}/triggers/{trigger_id}/test", auth.Execute, http.StatusCreated, s.testTrigger)
	handleSlow(t, "POST /v1/workflows/{id}/steps/{step_id}/test", auth.Execute, http.StatusOK, s.testStep)

	s.registerCatalogs(t)
	s.registerRuns(t)
	s.registerConnections(t)
	s.registerTables(t)
	s.registerFiles(t)
	s.registerWebhooks(t)
	s.registerAccounts(t)

	secrets, variables := s.secretRoutes(), s.variableRoutes()
	handle(t, "GET /v1/secrets", auth.Read, http.StatusOK, secrets.list)
	handle(t, "GET /v1/secrets/{name}", auth.Read, http.StatusOK, secrets.get)
	handle(t, "PUT /v1/secrets/{name}", auth.Write, http.StatusOK, s.putSecret)
	handle(t, "DELETE /v1/secrets/{name}", auth.Write, http.StatusNoContent, secrets.remove)
	handle(t, "GET /v1/variables", auth.Read, http.StatusOK, variables.list)
	handle(t, "GET /v1/variables/{name}", auth.Read, http.StatusOK, variables.get)
	handle(t, "PUT /v1/variables/{name}", auth.Write, http.StatusOK, s.putVariable)
	handle(t, "DELETE /v1/variables/{name}", auth.Write, http.StatusNoContent, variables.remove)

	handleSlow(t, "POST /v1/expressions/evaluate", auth.Read, http.StatusOK, s.evaluateExpression)
	handle(t, "GET /v1/schedules/preview", auth.Read, http.StatusOK, s.previewSchedule)

	handle(t, "GET /v1/api-keys", auth.Admin, http.StatusOK, s.listKeys)
	handle(t, "POST /v1/api-keys", auth.Admin, http.StatusCreated, s.createKey)
	handle(t, "GET /v1/api-keys/{id}", auth.Admin, http.StatusOK, s.getKey)
	handle(t, "DELETE /v1/api-keys/{id}", auth.Admin, http.StatusNoContent, s.revokeKey)

	handle(t, "GET /v1/workspaces", auth.Read, http.StatusOK, s.listWorkspaces)
	handle(t, "POST /v1/workspaces", auth.Admin, http.StatusCreated, s.createWorkspace)
	handle(t, "GET /v1/workspaces/{id}", auth.Read, http.StatusOK, s.getWorkspace)
	handle(t, "PATCH /v1/workspaces/{id}", auth.Admin, http.StatusOK, s.updateWorkspace)

	handle(t, "GET /v1/search", auth.Read, http.StatusOK, s.search)

	handle(t, "GET /v1/usage", auth.Read, http.StatusOK, s.getUsage)
	handle(t, "GET /v1/audit", auth.Admin, http.StatusOK, s.listAudit)
	handle(t, "GET /v1/nodes", auth.Admin, http.StatusOK, s.listNodes)

	handle(t, "GET /v1/openapi.yaml", auth.Public, http.StatusOK, s.openapiYAML)
	handle(t, "GET /v1/openapi.json", auth.Public, http.StatusOK, s.openapiJSON)
	handle(t, "GET /v1/schemas/workflow.json", auth.Public, http.StatusOK, s.workflowSchema)
	handle(t, "GET /v1/schemas/integration.json", auth.Public, http.StatusOK, s.integrationSchema)
	handle(t, "GET "+healthPath, auth.Public, http.StatusOK, s.health)
	handle(t, "GET "+readyPath, auth.Public, http.StatusOK, s.ready)
}

// registerCatalogs adds the routes of what is the same for all workspaces: actions,
// templates and integrations.
func (s *Server) registerCatalogs(t *routeTable) {
	handle(t, "GET /v1/actions", auth.Read, http.StatusOK, s.listActions)
	handle(t, "GET /v1/actions/{name}", auth.Read, http.StatusOK, s.getAction)

	handle(t, "GET /v1/templates", auth.Read, http.StatusOK, s.listTemplates)
	handle(t, "GET /v1/templates/{name}", auth.Read, http.StatusOK, s.getTemplate)
	handlePrepared(t, "POST /v1/templates/{name}/workflows", auth.Write, http.StatusCreated, s.useTemplate)

	handle(t, "GET /v1/integrations", auth.Read, http.StatusOK, s.listIntegrations)
	handlePrepared(t, "POST /v1/integrations", auth.Write, http.StatusCreated, s.createIntegration)
	handlePrepared(t, "POST /v1/integrations/from-openapi", auth.Write, http.StatusCreated, s.convertOpenAPI)
	handle(t, "GET /v1/integrations/{id}", auth.Read, http.StatusOK, s.getIntegration)
	handlePrepared(t, "PUT /v1/integrations/{id}", auth.Write, http.StatusOK, s.replaceIntegration)
	handle(t, "DELETE /v1/integrations/{id}", auth.Write, http.StatusNoContent, s.deleteIntegration)
	handle(t, "GET /v1/integrations/{id}/manifest", auth.Read, http.StatusOK, s.getManifest)
	handle(t, "GET /v1/integrations/{id}/icon", auth.Read, http.StatusOK, s.getIntegrationIcon)
	handle(t, "GET /v1/integrations/{id}/triggers/{trigger}", auth.Read, http.StatusOK, s.getIntegrationTrigger)
}

// registerRuns adds the routes of runs and their steps.
func (s *Server) registerRuns(t *routeTable) {
	handle(t, "GET /v1/workflows/{workflow_id}/runs", auth.Read, http.StatusOK, s.listRuns)
	handlePrepared(t, "POST /v1/workflows/{workflow_id}/runs", auth.Execute, http.StatusCreated, s.startRun)
	handle(t, "GET /v1/runs", auth.Read, http.StatusOK, s.listAllRuns)
	handle(t, "GET /v1/runs/{id}", auth.Read, http.StatusOK, s.getRun)
	handle(t, "GET /v1/runs/{id}/definition", auth.Read, http.StatusOK, s.getRunDefinition)
	handle(t, "GET /v1/runs/{id}/events", auth.Read, http.StatusOK, s.followRun)
	handle(t, "POST /v1/runs/{id}/cancel", auth.Execute, http.StatusOK, s.cancelRun)
	handlePrepared(t, "POST /v1/runs/{id}/retry", auth.Execute, http.StatusCreated, s.retryRun)
	handle(t, "GET /v1/runs/{id}/logs", auth.Read, http.StatusOK, s.listLogs)
	handle(t, "GET /v1/runs/{id}/steps/{step_id}/rounds", auth.Read, http.StatusOK, s.listRounds)
	handle(t, "GET /v1/runs/{id}/steps", auth.Read, http.StatusOK, s.listSteps)
	handle(t, "GET /v1/runs/{id}/steps/{step_id}", auth.Read, http.StatusOK, s.getStep)
	handle(t, "POST /v1/runs/{id}/steps/{step_id}/resume", auth.Execute, http.StatusOK, s.resumeStep)
	handle(t, "GET /v1/approvals", auth.Read, http.StatusOK, s.listApprovals)
}

// registerConnections adds the routes of connections and OAuth apps.
func (s *Server) registerConnections(t *routeTable) {
	handle(t, "GET /v1/connections", auth.Read, http.StatusOK, s.listConnections)
	handlePrepared(t, "POST /v1/connections", auth.Write, http.StatusCreated, s.createConnection)
	handle(t, "GET /v1/connections/{id}", auth.Read, http.StatusOK, s.getConnection)
	handle(t, "PATCH /v1/connections/{id}", auth.Write, http.StatusOK, s.updateConnection)
	handle(t, "DELETE /v1/connections/{id}", auth.Write, http.StatusNoContent, s.deleteConnection)
	handleSlow(t, "POST /v1/connections/{id}/test", auth.Write, http.StatusOK, s.testConnection)
	handleSlow(t, "POST /v1/connections/{id}/options", auth.Write, http.StatusOK, s.listOptions)
	handleSlow(t, "POST /ui/v1/connections/connect", auth.Write, http.StatusOK, s.connect)
	handle(t, "POST /ui/v1/connections/{id}/reconnect", auth.Write, http.StatusOK, s.reconnect)
	handle(t, "GET /ui/v1/people", auth.Read, http.StatusOK, s.listPeople)
	handleSlow(t, "POST /ui/v1/connections/connect-device", auth.Write, http.StatusOK, s.connectDevice)
	handleSlow(t, "POST /ui/v1/connections/{id}/reconnect-device", auth.Write, http.StatusOK, s.reconnectDevice)
	handleSlow(t, "POST /ui/v1/connections/poll-device", auth.Write, http.StatusOK, s.pollDevice)
	handle(t, "POST /ui/v1/connections/confirm", auth.Write, http.StatusOK, s.confirmConsent)
	handleSlow(t, "GET "+consentCallback, auth.Write, http.StatusFound, s.finishConsent).failed = s.consentFailed

	handle(t, "GET /v1/oauth-apps", auth.Admin, http.StatusOK, s.listApps)
	handle(t, "POST /v1/oauth-apps", auth.Admin, http.StatusCreated, s.createApp)
	handle(t, "GET /v1/oauth-apps/{id}", auth.Admin, http.StatusOK, s.getApp)
	handle(t, "DELETE /v1/oauth-apps/{id}", auth.Admin, http.StatusNoContent, s.deleteApp)
}

// registerTables adds the routes of what is kept between runs: tables and keys.
func (s *Server) registerTables(t *routeTable) {
	handle(t, "GET /v1/tables", auth.Read, http.StatusOK, s.listTables)
	handle(t, "POST /v1/tables", auth.Write, http.StatusCreated, s.createTable)
	handle(t, "GET /v1/tables/{id}", auth.Read, http.StatusOK, s.getTable)
	handle(t, "PATCH /v1/tables/{id}", auth.Write, http.StatusOK, s.updateTable)
	handle(t, "DELETE /v1/tables/{id}", auth.Write, http.StatusNoContent, s.deleteTable)
	handle(t, "GET /v1/tables/{id}/rows", auth.Read, http.StatusOK, s.listRows)
	handle(t, "POST /v1/tables/{id}/rows", auth.Write, http.StatusCreated, s.createRow)
	handle(t, "PUT /v1/tables/{id}/rows", auth.Write, http.StatusOK, s.upsertRow)
	handlePrepared(t, "POST /v1/tables/{id}/import", auth.Write, http.StatusOK, s.importRows)
	handle(t, "GET /v1/tables/{id}/export", auth.Read, http.StatusOK, s.exportRows)
	handle(t, "GET /v1/tables/{id}/rows/{row_id}", auth.Read, http.StatusOK, s.getRow)
	handle(t, "PATCH /v1/tables/{id}/rows/{row_id}", auth.Write, http.StatusOK, s.updateRow)
	handle(t, "DELETE /v1/tables/{id}/rows/{row_id}", auth.Write, http.StatusNoContent, s.deleteRow)

	handle(t, "GET /v1/state", auth.Read, http.StatusOK, s.listState)
	handle(t, "GET /v1/state/{key}", auth.Read, http.StatusOK, s.getStateKey)
	handle(t, "PUT /v1/state/{key}", auth.Write, http.StatusOK, s.putStateKey)
	handle(t, "DELETE /v1/state/{key}", auth.Write, http.StatusNoContent, s.deleteStateKey)
}

// registerFiles adds the routes of files and their resumable uploads.
func (s *Server) registerFiles(t *routeTable) {
	handle(t, "GET /v1/files", auth.Read, http.StatusOK, s.listFiles)
	handleSlow(t, "POST /v1/files", auth.Execute, http.StatusCreated, s.uploadFile)
	handleSlow(t, "GET /v1/files/{id}", auth.Read, http.StatusOK, s.getFile)
	handle(t, "DELETE /v1/files/{id}", auth.Write, http.StatusNoContent, s.deleteFile)

	handle(t, "OPTIONS /v1/files/uploads", auth.Execute, http.StatusNoContent, s.uploadOptions).tus = true
	handleSlow(t, "POST /v1/files/uploads", auth.Execute, http.StatusCreated, s.createUpload).tus = true
	handleSlow(t, "GET /v1/files/uploads/{id}", auth.Execute, http.StatusOK, s.getUpload).tus = true
	handleSlow(t, "PATCH /v1/files/uploads/{id}", auth.Execute, http.StatusNoContent, s.appendUpload).tus = true
	handle(t, "DELETE /v1/files/uploads/{id}", auth.Execute, http.StatusNoContent, s.endUpload).tus = true
}

// registerWebhooks adds the routes of events, webhooks and deliveries.
func (s *Server) registerWebhooks(t *routeTable) {
	handle(t, "GET /v1/webhooks", auth.Read, http.StatusOK, s.listWebhooks)
	handle(t, "POST /v1/webhooks", auth.Write, http.StatusCreated, s.createWebhook)
	handle(t, "GET /v1/webhooks/{id}", auth.Read, http.StatusOK, s.getWebhook)
	handle(t, "PATCH /v1/webhooks/{id}", auth.Write, http.StatusOK, s.updateWebhook)
	handle(t, "DELETE /v1/webhooks/{id}", auth.Write, http.StatusNoContent, s.deleteWebhook)
	handle(t, "POST /v1/webhooks/{id}/rotate-secret", auth.Write, http.StatusOK, s.rotateSecret)
	handle(t, "POST /v1/webhooks/{id}/test", auth.Write, http.StatusAccepted, s.testWebhook)
	handle(t, "GET /v1/webhooks/{id}/deliveries", auth.Read, http.StatusOK, s.listDeliveries)
	handle(t, "POST /v1/webhooks/{id}/redeliver", auth.Write, http.StatusOK, s.redeliverRange)
	handle(t, "GET /v1/deliveries/{id}", auth.Read, http.StatusOK, s.getDelivery)
	handle(t, "POST /v1/deliveries/{id}/redeliver", auth.Write, http.StatusCreated, s.redeliver)
	handle(t, "GET /v1/events", auth.Read, http.StatusOK, s.listEvents)
	handle(t, "GET /v1/events/stream", auth.Read, http.StatusOK, s.followEvents)
}

// registerAccounts adds the routes of members, and those that only make sense
// with a session.
func (s *Server) registerAccounts(t *routeTable) {
	handle(t, "GET /v1/members", auth.Admin, http.StatusOK, s.listMembers)
	handle(t, "GET /v1/members/{id}", auth.Admin, http.StatusOK, s.getMember)
	handle(t, "PATCH /v1/members/{id}", auth.Admin, http.StatusOK, s.updateMember)
	handle(t, "DELETE /v1/members/{id}", auth.Admin, http.StatusNoContent, s.removeMember)
	handle(t, "GET /v1/invitations", auth.Admin, http.StatusOK, s.listInvitations)
	handle(t, "POST /v1/invitations", auth.Admin, http.StatusCreated, s.createInvitation)
	handle(t, "GET /v1/invitations/{id}", auth.Admin, http.StatusOK, s.getInvitation)
	handle(t, "DELETE /v1/invitations/{id}", auth.Admin, http.StatusNoContent, s.revokeInvitation)

	handle(t, "GET /ui/v1/welcome", auth.Public, http.StatusOK, s.getWelcome)
	handle(t, "POST /ui/v1/welcome", auth.Public, http.StatusCreated, s.createOwner)
	handle(t, "POST /ui/v1/session", auth.Public, http.StatusCreated, s.signIn)
	handle(t, "GET /ui/v1/session", auth.Session, http.StatusOK, s.getSession)
	handle(t, "PATCH /ui/v1/session", auth.Session, http.StatusOK, s.moveSession)
	handle(t, "DELETE /ui/v1/session", auth.Session, http.StatusNoContent, s.signOut)
	handle(t, "GET /ui/v1/sessions", auth.Session, http.StatusOK, s.listSessions)
	handle(t, "DELETE /ui/v1/sessions", auth.Session, http.StatusNoContent, s.signOutEverywhere)
	handle(t, "DELETE /ui/v1/sessions/{id}", auth.Session, http.StatusNoContent, s.endSession)
	handle(t, "PATCH /ui/v1/account", auth.Session, http.StatusOK, s.updateAccount)
	handle(t, "GET /ui/v1/oidc/start", auth.Public, http.StatusFound, s.startOIDC)
	handle(t, "GET "+oidcCallback, auth.Public, http.StatusFound, s.finishOIDC)
	handle(t, "POST /ui/v1/password-reset", auth.Public, http.StatusCreated, s.resetPassword)
	handle(t, "POST /ui/v1/invitations/look", auth.Public, http.StatusOK, s.previewInvitation)
	handle(t, "POST /ui/v1/invitations/accept", auth.Public, http.StatusCreated, s.acceptInvitation)
	handle(t, "POST /ui/v1/invitations/accept-with-provider", auth.Public, http.StatusOK, s.acceptWithProvider)
}
