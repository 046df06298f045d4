package api

import (
	"net/http"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/subscription"
	"github.com/stepmill/stepmill/internal/transport"
	"github.com/stepmill/stepmill/internal/trigger"
)

// register adds every route: pattern, scope, status and function on one line. A
// route cannot be added without a scope. Routes below /v1 are also mounted below
// /ui/v1, for signed-in users.
func register(t *transport.RouteTable, h *handlers) {
	transport.Handle(t, "GET /v1/workflows", auth.Read, http.StatusOK, h.workflows.list)
	transport.HandleWrite(t, "POST /v1/workflows", auth.Write, http.StatusCreated, h.workflows.create)
	transport.HandlePrepared(t, "POST /v1/workflows/import", auth.Write, http.StatusCreated, h.workflows.prepareImport, h.workflows.insert)
	transport.Handle(t, "GET /v1/workflows/{id}", auth.Read, http.StatusOK, h.workflows.get)
	transport.Handle(t, "PATCH /v1/workflows/{id}", auth.Write, http.StatusOK, h.workflows.update)
	transport.Handle(t, "DELETE /v1/workflows/{id}", auth.Write, http.StatusNoContent, h.workflows.remove)
	transport.HandleSlow(t, "POST /v1/workflows/{id}/validate", auth.Write, http.StatusOK, h.workflows.validate)
	transport.Handle(t, "GET /v1/workflows/{id}/versions", auth.Read, http.StatusOK, h.workflows.listVersions)
	transport.Handle(t, "GET /v1/workflows/{id}/versions/{n}", auth.Read, http.StatusOK, h.workflows.getVersion)
	transport.Handle(t, "GET /v1/workflows/{id}/versions/{n}/diff", auth.Read, http.StatusOK, h.workflows.diffVersions)
	transport.HandlePrepared(t, "POST /v1/workflows/{id}/versions/{n}/restore", auth.Write, http.StatusOK, h.workflows.prepareRestore, h.workflows.restore)
	transport.Handle(t, "GET /v1/workflows/{id}/triggers", auth.Read, http.StatusOK, h.triggers.list)
	transport.HandlePrepared(t, "POST /v1/workflows/{id}/triggers/{trigger_id}/rotate", auth.Write, http.StatusOK, h.triggers.prepareRotate, h.triggers.rotate)
	transport.HandlePrepared(t, "POST /v1/workflows/{id}/triggers/{trigger_id}/listen", auth.Write, http.StatusOK, h.triggers.prepareListen, h.triggers.listen)
	transport.Handle(t, "DELETE /v1/workflows/{id}/triggers/{trigger_id}/listen", auth.Write, http.StatusNoContent, h.triggers.stopListening)
	transport.Handle(t, "GET /v1/workflows/{id}/triggers/{trigger_id}/requests", auth.Read, http.StatusOK, h.triggers.listRequests)
	transport.HandlePrepared(t, "POST /v1/workflows/{id}/triggers/{trigger_id}/test", auth.Execute, http.StatusCreated, h.triggers.prepareTest, h.runs.starts.commit)
	transport.HandleSlow(t, "POST /v1/workflows/{id}/steps/{step_id}/test", auth.Execute, http.StatusOK, h.previews.testStep)

	registerCatalogs(t, h)
	registerRuns(t, h)
	registerConnections(t, h)
	registerTables(t, h)
	registerFiles(t, h)
	registerWebhooks(t, h)
	registerAccounts(t, h)
	registerPublic(t, h)

	transport.Handle(t, "GET /v1/secrets", auth.Read, http.StatusOK, h.secrets.list)
	transport.Handle(t, "GET /v1/secrets/{name}", auth.Read, http.StatusOK, h.secrets.get)
	transport.Handle(t, "PUT /v1/secrets/{name}", auth.Write, http.StatusOK, h.secrets.put)
	transport.Handle(t, "DELETE /v1/secrets/{name}", auth.Write, http.StatusNoContent, h.secrets.remove)
	transport.Handle(t, "GET /v1/variables", auth.Read, http.StatusOK, h.variables.list)
	transport.Handle(t, "GET /v1/variables/{name}", auth.Read, http.StatusOK, h.variables.get)
	transport.Handle(t, "PUT /v1/variables/{name}", auth.Write, http.StatusOK, h.variables.put)
	transport.Handle(t, "DELETE /v1/variables/{name}", auth.Write, http.StatusNoContent, h.variables.remove)

	transport.HandleSlow(t, "POST /v1/expressions/evaluate", auth.Read, http.StatusOK, h.previews.evaluate)
	transport.Handle(t, "GET /v1/schedules/preview", auth.Read, http.StatusOK, h.previews.schedule)

	transport.Handle(t, "GET /v1/api-keys", auth.Admin, http.StatusOK, h.keys.list)
	transport.HandleWrite(t, "POST /v1/api-keys", auth.Admin, http.StatusCreated, h.keys.create)
	transport.Handle(t, "GET /v1/api-keys/{id}", auth.Admin, http.StatusOK, h.keys.get)
	transport.Handle(t, "DELETE /v1/api-keys/{id}", auth.Admin, http.StatusNoContent, h.keys.revoke)

	transport.Handle(t, "GET /v1/workspaces", auth.Read, http.StatusOK, h.workspaces.list)
	transport.HandleWrite(t, "POST /v1/workspaces", auth.Admin, http.StatusCreated, h.workspaces.create)
	transport.Handle(t, "GET /v1/workspaces/{id}", auth.Read, http.StatusOK, h.workspaces.get)
	transport.Handle(t, "PATCH /v1/workspaces/{id}", auth.Admin, http.StatusOK, h.workspaces.update)

	transport.Handle(t, "GET /v1/search", auth.Read, http.StatusOK, h.searches.search)

	transport.Handle(t, "GET /v1/usage", auth.Read, http.StatusOK, h.usageReports.get)
	transport.Handle(t, "GET /v1/audit", auth.Admin, http.StatusOK, h.auditLog.list)
	transport.Handle(t, "GET /v1/nodes", auth.Admin, http.StatusOK, h.nodes.list)

	transport.Handle(t, "GET /v1/openapi.yaml", auth.Public, http.StatusOK, h.documents.openapiYAML)
	transport.Handle(t, "GET /v1/openapi.json", auth.Public, http.StatusOK, h.documents.openapiJSON)
	transport.Handle(t, "GET /v1/schemas/workflow.json", auth.Public, http.StatusOK, h.documents.workflowSchema)
	transport.Handle(t, "GET /v1/schemas/integration.json", auth.Public, http.StatusOK, h.documents.integrationSchema)
	transport.Handle(t, "GET "+transport.HealthPath, auth.Public, http.StatusOK, h.health.alive)
	transport.Handle(t, "GET "+transport.ReadyPath, auth.Public, http.StatusOK, h.health.ready)
}

func registerCatalogs(t *transport.RouteTable, h *handlers) {
	transport.Handle(t, "GET /v1/actions", auth.Read, http.StatusOK, h.actions.list)
	transport.Handle(t, "GET /v1/actions/{name}", auth.Read, http.StatusOK, h.actions.get)

	transport.Handle(t, "GET /v1/templates", auth.Read, http.StatusOK, h.templates.list)
	transport.Handle(t, "GET /v1/templates/{name}", auth.Read, http.StatusOK, h.templates.get)
	transport.HandlePrepared(t, "POST /v1/templates/{name}/workflows", auth.Write, http.StatusCreated, h.templates.prepareUse, h.workflows.insert)

	transport.Handle(t, "GET /v1/integrations", auth.Read, http.StatusOK, h.integrations.list)
	transport.HandlePrepared(t, "POST /v1/integrations", auth.Write, http.StatusCreated, h.integrations.prepareCreate, h.integrations.create)
	transport.HandlePrepared(t, "POST /v1/integrations/from-openapi", auth.Write, http.StatusCreated, h.integrations.prepareConversion, h.integrations.addConverted)
	transport.Handle(t, "GET /v1/integrations/{id}", auth.Read, http.StatusOK, h.integrations.get)
	transport.HandlePrepared(t, "PUT /v1/integrations/{id}", auth.Write, http.StatusOK, h.integrations.prepareReplace, h.integrations.replace)
	transport.Handle(t, "DELETE /v1/integrations/{id}", auth.Write, http.StatusNoContent, h.integrations.remove)
	transport.Handle(t, "GET /v1/integrations/{id}/manifest", auth.Read, http.StatusOK, h.integrations.getManifest)
	transport.Handle(t, "GET /v1/integrations/{id}/icon", auth.Read, http.StatusOK, h.integrations.getIcon)
	transport.Handle(t, "GET /v1/integrations/{id}/triggers/{trigger}", auth.Read, http.StatusOK, h.integrations.getTrigger)
}

func registerRuns(t *transport.RouteTable, h *handlers) {
	transport.Handle(t, "GET /v1/workflows/{workflow_id}/runs", auth.Read, http.StatusOK, h.runs.list)
	transport.HandlePrepared(t, "POST /v1/workflows/{workflow_id}/runs", auth.Execute, http.StatusCreated, h.runs.prepareStart, h.runs.starts.commit)
	transport.Handle(t, "GET /v1/runs", auth.Read, http.StatusOK, h.runs.listAll)
	transport.Handle(t, "GET /v1/runs/{id}", auth.Read, http.StatusOK, h.runs.get)
	transport.Handle(t, "GET /v1/runs/{id}/definition", auth.Read, http.StatusOK, h.runs.getDefinition)
	transport.Handle(t, "GET /v1/runs/{id}/events", auth.Read, http.StatusOK, h.runs.follow)
	transport.HandleWrite(t, "POST /v1/runs/{id}/cancel", auth.Execute, http.StatusOK, h.runs.cancel)
	transport.HandlePrepared(t, "POST /v1/runs/{id}/retry", auth.Execute, http.StatusCreated, h.runs.prepareRetry, h.runs.starts.commit)
	transport.Handle(t, "GET /v1/runs/{id}/logs", auth.Read, http.StatusOK, h.runs.listLogs)
	transport.Handle(t, "GET /v1/runs/{id}/steps/{step_id}/rounds", auth.Read, http.StatusOK, h.runs.listRounds)
	transport.Handle(t, "GET /v1/runs/{id}/steps", auth.Read, http.StatusOK, h.runs.listSteps)
	transport.Handle(t, "GET /v1/runs/{id}/steps/{step_id}", auth.Read, http.StatusOK, h.runs.getStep)
	transport.HandleWrite(t, "POST /v1/runs/{id}/steps/{step_id}/resume", auth.Execute, http.StatusOK, h.runs.resumeStep)
	transport.Handle(t, "GET /v1/approvals", auth.Read, http.StatusOK, h.runs.listApprovals)
}

func registerConnections(t *transport.RouteTable, h *handlers) {
	transport.Handle(t, "GET /v1/connections", auth.Read, http.StatusOK, h.connections.list)
	transport.HandlePrepared(t, "POST /v1/connections", auth.Write, http.StatusCreated, h.connections.prepareCreate, h.connections.create)
	transport.Handle(t, "GET /v1/connections/{id}", auth.Read, http.StatusOK, h.connections.get)
	transport.Handle(t, "PATCH /v1/connections/{id}", auth.Write, http.StatusOK, h.connections.update)
	transport.Handle(t, "DELETE /v1/connections/{id}", auth.Write, http.StatusNoContent, h.connections.remove)
	transport.HandleSlow(t, "POST /v1/connections/{id}/test", auth.Write, http.StatusOK, h.connections.test)
	transport.HandleSlow(t, "POST /v1/connections/{id}/options", auth.Write, http.StatusOK, h.connections.listOptions)
	transport.HandleSlow(t, "POST /ui/v1/connections/connect", auth.Write, http.StatusOK, h.consents.connect)
	transport.Handle(t, "POST /ui/v1/connections/{id}/reconnect", auth.Write, http.StatusOK, h.consents.reconnect)
	transport.Handle(t, "GET /ui/v1/people", auth.Read, http.StatusOK, h.members.listPeople)
	transport.HandleSlow(t, "POST /ui/v1/connections/connect-device", auth.Write, http.StatusOK, h.consents.connectDevice)
	transport.HandleSlow(t, "POST /ui/v1/connections/{id}/reconnect-device", auth.Write, http.StatusOK, h.consents.reconnectDevice)
	transport.HandleSlow(t, "POST /ui/v1/connections/poll-device", auth.Write, http.StatusOK, h.consents.pollDevice)
	transport.Handle(t, "POST /ui/v1/connections/confirm", auth.Write, http.StatusOK, h.consents.confirm)
	transport.HandleSlow(t, "GET "+consentCallback, auth.Write, http.StatusFound, h.consents.finish).Failed = h.consents.failed

	transport.Handle(t, "GET /v1/oauth-apps", auth.Admin, http.StatusOK, h.oauthApps.list)
	transport.HandlePrepared(t, "POST /v1/oauth-apps", auth.Admin, http.StatusCreated, h.oauthApps.prepareCreate, h.oauthApps.create)
	transport.Handle(t, "GET /v1/oauth-apps/{id}", auth.Admin, http.StatusOK, h.oauthApps.get)
	transport.Handle(t, "DELETE /v1/oauth-apps/{id}", auth.Admin, http.StatusNoContent, h.oauthApps.remove)
}

// registerTables adds the routes of what is kept between runs: tables and keys.
func registerTables(t *transport.RouteTable, h *handlers) {
	transport.Handle(t, "GET /v1/tables", auth.Read, http.StatusOK, h.tables.list)
	transport.HandleWrite(t, "POST /v1/tables", auth.Write, http.StatusCreated, h.tables.create)
	transport.Handle(t, "GET /v1/tables/{id}", auth.Read, http.StatusOK, h.tables.get)
	transport.Handle(t, "PATCH /v1/tables/{id}", auth.Write, http.StatusOK, h.tables.update)
	transport.Handle(t, "DELETE /v1/tables/{id}", auth.Write, http.StatusNoContent, h.tables.remove)
	transport.Handle(t, "GET /v1/tables/{id}/rows", auth.Read, http.StatusOK, h.tables.listRows)
	transport.HandleWrite(t, "POST /v1/tables/{id}/rows", auth.Write, http.StatusCreated, h.tables.createRow)
	transport.Handle(t, "PUT /v1/tables/{id}/rows", auth.Write, http.StatusOK, h.tables.upsertRow)
	transport.HandlePrepared(t, "POST /v1/tables/{id}/import", auth.Write, http.StatusOK, h.tables.prepareRows, h.tables.importRows)
	transport.Handle(t, "GET /v1/tables/{id}/export", auth.Read, http.StatusOK, h.tables.exportRows)
	transport.Handle(t, "GET /v1/tables/{id}/rows/{row_id}", auth.Read, http.StatusOK, h.tables.getRow)
	transport.Handle(t, "PATCH /v1/tables/{id}/rows/{row_id}", auth.Write, http.StatusOK, h.tables.updateRow)
	transport.Handle(t, "DELETE /v1/tables/{id}/rows/{row_id}", auth.Write, http.StatusNoContent, h.tables.removeRow)

	transport.Handle(t, "GET /v1/state", auth.Read, http.StatusOK, h.stateKeys.list)
	transport.Handle(t, "GET /v1/state/{key}", auth.Read, http.StatusOK, h.stateKeys.get)
	transport.Handle(t, "PUT /v1/state/{key}", auth.Write, http.StatusOK, h.stateKeys.put)
	transport.Handle(t, "DELETE /v1/state/{key}", auth.Write, http.StatusNoContent, h.stateKeys.remove)
}

func registerFiles(t *transport.RouteTable, h *handlers) {
	transport.Handle(t, "GET /v1/files", auth.Read, http.StatusOK, h.files.list)
	transport.HandleSlow(t, "POST /v1/files", auth.Execute, http.StatusCreated, h.files.upload)
	transport.HandleSlow(t, "GET /v1/files/{id}", auth.Read, http.StatusOK, h.files.get)
	transport.Handle(t, "DELETE /v1/files/{id}", auth.Write, http.StatusNoContent, h.files.remove)

	transport.Handle(t, "OPTIONS /v1/files/uploads", auth.Execute, http.StatusNoContent, h.uploads.options).Headers = setTusHeaders
	transport.HandleSlow(t, "POST /v1/files/uploads", auth.Execute, http.StatusCreated, h.uploads.create).Headers = setTusHeaders
	transport.HandleSlow(t, "GET /v1/files/uploads/{id}", auth.Execute, http.StatusOK, h.uploads.get).Headers = setTusHeaders
	transport.HandleSlow(t, "PATCH /v1/files/uploads/{id}", auth.Execute, http.StatusNoContent, h.uploads.add).Headers = setTusHeaders
	transport.Handle(t, "DELETE /v1/files/uploads/{id}", auth.Execute, http.StatusNoContent, h.uploads.end).Headers = setTusHeaders
}

func registerWebhooks(t *transport.RouteTable, h *handlers) {
	transport.Handle(t, "GET /v1/webhooks", auth.Read, http.StatusOK, h.webhooks.list)
	transport.HandleWrite(t, "POST /v1/webhooks", auth.Write, http.StatusCreated, h.webhooks.create)
	transport.Handle(t, "GET /v1/webhooks/{id}", auth.Read, http.StatusOK, h.webhooks.get)
	transport.Handle(t, "PATCH /v1/webhooks/{id}", auth.Write, http.StatusOK, h.webhooks.update)
	transport.Handle(t, "DELETE /v1/webhooks/{id}", auth.Write, http.StatusNoContent, h.webhooks.remove)
	transport.HandleWrite(t, "POST /v1/webhooks/{id}/rotate-secret", auth.Write, http.StatusOK, h.webhooks.rotateSecret)
	transport.HandleWrite(t, "POST /v1/webhooks/{id}/test", auth.Write, http.StatusAccepted, h.webhooks.test)
	transport.Handle(t, "GET /v1/webhooks/{id}/deliveries", auth.Read, http.StatusOK, h.webhooks.listDeliveries)
	transport.HandleWrite(t, "POST /v1/webhooks/{id}/redeliver", auth.Write, http.StatusOK, h.webhooks.redeliverRange)
	transport.Handle(t, "GET /v1/deliveries/{id}", auth.Read, http.StatusOK, h.webhooks.getDelivery)
	transport.HandleWrite(t, "POST /v1/deliveries/{id}/redeliver", auth.Write, http.StatusCreated, h.webhooks.redeliver)
	transport.Handle(t, "GET /v1/events", auth.Read, http.StatusOK, h.events.list)
	transport.Handle(t, "GET /v1/events/stream", auth.Read, http.StatusOK, h.events.follow)
}

// registerAccounts adds the routes of members, and those that only make sense
// with a session.
func registerAccounts(t *transport.RouteTable, h *handlers) {
	transport.Handle(t, "GET /v1/members", auth.Admin, http.StatusOK, h.members.list)
	transport.Handle(t, "GET /v1/members/{id}", auth.Admin, http.StatusOK, h.members.get)
	transport.Handle(t, "PATCH /v1/members/{id}", auth.Admin, http.StatusOK, h.members.update)
	transport.Handle(t, "DELETE /v1/members/{id}", auth.Admin, http.StatusNoContent, h.members.remove)
	transport.Handle(t, "GET /v1/invitations", auth.Admin, http.StatusOK, h.members.listInvitations)
	transport.HandleWrite(t, "POST /v1/invitations", auth.Admin, http.StatusCreated, h.members.invite)
	transport.Handle(t, "GET /v1/invitations/{id}", auth.Admin, http.StatusOK, h.members.getInvitation)
	transport.Handle(t, "DELETE /v1/invitations/{id}", auth.Admin, http.StatusNoContent, h.members.revokeInvitation)

	transport.Handle(t, "GET /ui/v1/welcome", auth.Public, http.StatusOK, h.welcome.get)
	transport.Handle(t, "POST /ui/v1/welcome", auth.Public, http.StatusCreated, h.welcome.createOwner)
	transport.Handle(t, "POST /ui/v1/session", auth.Public, http.StatusCreated, h.sessions.signIn)
	transport.Handle(t, "GET /ui/v1/session", auth.Session, http.StatusOK, h.sessions.get)
	transport.Handle(t, "PATCH /ui/v1/session", auth.Session, http.StatusOK, h.sessions.move)
	transport.Handle(t, "DELETE /ui/v1/session", auth.Session, http.StatusNoContent, h.sessions.signOut)
	transport.Handle(t, "GET /ui/v1/sessions", auth.Session, http.StatusOK, h.sessions.list)
	transport.Handle(t, "DELETE /ui/v1/sessions", auth.Session, http.StatusNoContent, h.sessions.signOutEverywhere)
	transport.Handle(t, "DELETE /ui/v1/sessions/{id}", auth.Session, http.StatusNoContent, h.sessions.end)
	transport.Handle(t, "PATCH /ui/v1/account", auth.Session, http.StatusOK, h.sessions.updateAccount)
	transport.Handle(t, "GET /ui/v1/oidc/start", auth.Public, http.StatusFound, h.providerSignIns.start)
	transport.Handle(t, "GET "+oidcCallback, auth.Public, http.StatusFound, h.providerSignIns.finish)
	transport.Handle(t, "POST /ui/v1/password-reset", auth.Public, http.StatusCreated, h.welcome.resetPassword)
	transport.Handle(t, "POST /ui/v1/invitations/look", auth.Public, http.StatusOK, h.welcome.previewInvitation)
	transport.Handle(t, "POST /ui/v1/invitations/accept", auth.Public, http.StatusCreated, h.welcome.acceptInvitation)
	transport.Handle(t, "POST /ui/v1/invitations/accept-with-provider", auth.Public, http.StatusOK, h.providerSignIns.acceptInvitation)
}

// registerPublic adds the routes of those who have a link or a secret URL.
func registerPublic(t *transport.RouteTable, h *handlers) {
	t.AddPublic(transport.PublicRoute{Prefix: run.PagePath, Methods: []string{http.MethodGet, http.MethodPost}, Status: http.StatusOK, Serve: h.decisionLinks.servePage, Fail: h.decisionLinks.failPage})
	t.AddPublic(transport.PublicRoute{Prefix: run.CallbackPath, Methods: []string{http.MethodPost}, Status: http.StatusOK, Serve: h.decisionLinks.serveCallback})
	t.AddPublic(transport.PublicRoute{Prefix: trigger.HookPath, Status: http.StatusAccepted, Serve: h.webhookCalls.serve})
	t.AddPublic(transport.PublicRoute{Prefix: subscription.Path, Status: http.StatusOK, Serve: h.serviceCalls.serve})
}
