import { AttachmentTypeObject, AttendeeTypeObject, BodyTypeObject, OnlineMeetingProviderTypeObject, SensitivityObject } from "@microsoft/msgraph-sdk/models/index.js";
import { createSubscriptionsServiceClient } from "@microsoft/msgraph-sdk-subscriptions/subscriptionsServiceClient.js";
import { createUsersServiceClient } from "@microsoft/msgraph-sdk-users/usersServiceClient.js";
import { adapter, list, send, upload } from "../microsoft.mjs";

const id = "String {9d1b7c5e-5d0e-4d6f-8f4e-3c7a2f8b1e60} Name stepmill_step";
const steps = { drafts: ["ac7748b1-95ec-8927-9772-02bae7a776d1", "fedb7573-cdd4-8e75-9c65-9bd41a67963c"], only: "46c351d2-fd2a-83b1-88d4-6174c69f38c4" }; // step.uuid in tests
const large = 3000000;
const select = "id subject from toRecipients ccRecipients receivedDateTime bodyPreview isRead hasAttachments importance categories conversationId parentFolderId webLink".split(" ");

const user = ({ client }, i) => (i.mailbox ? client.users.byUserId(i.mailbox) : client.me);
const recipients = (list) => list?.map((address) => ({ emailAddress: { address } }));
const quoted = (text) => `'${text.replaceAll("'", "''")}'`;
const utc = (time) => new Date(time).toISOString();

/** @returns {import("@microsoft/msgraph-sdk/models/index.js").Message} */
const message = (i, attempt = 0) => ({
  subject: i.subject,
  body: i.html ? { contentType: BodyTypeObject.Html, content: i.html } : { contentType: BodyTypeObject.Text, content: i.text ?? "" },
  toRecipients: recipients(i.to),
  ccRecipients: recipients(i.cc),
  bccRecipients: recipients(i.bcc),
  from: i.from && { emailAddress: { address: i.from } },
  replyTo: i.reply_to && recipients([i.reply_to]),
  importance: i.importance,
  isReadReceiptRequested: i.receipt,
  singleValueExtendedProperties: [{ id, value: steps.drafts[attempt] }],
});

const typeOf = (name) => ({ pdf: "application/pdf", txt: "text/plain; charset=utf-8", png: "image/png", zip: "application/zip" })[name.split(".").pop()];

async function attach(graph, i, messageId, file, more = {}) {
  const { attachments } = user(graph, i).messages.byMessageId(messageId);
  /** @type {any} */
  const about = { name: file.name, contentType: typeOf(file.name), ...more };
  if (file.content.length < large) {
    // The client leaves out the members of types that are derived from others.
    const { contentId, ...rest } = about;
    const derived = /** @satisfies {import("@microsoft/msgraph-sdk/models/index.js").FileAttachment} */ ({ contentId, contentBytes: file.content.toString("base64") });
    await attachments.post({ odataType: "#microsoft.graph.fileAttachment", ...rest, additionalData: derived });
    return;
  }
  const session = await attachments.createUploadSession.post({
    attachmentItem: { attachmentType: AttachmentTypeObject.File, ...about, size: file.content.length },
  });
  await upload(graph.environment, session, file, 3932160);
}

async function attachAll(graph, i, draft) {
  const files = i.attachments ?? [];
  for (const file of files.filter(({ content }) => content.length < large)) await attach(graph, i, draft.id, file);
  for (const file of files.filter(({ content }) => content.length >= large)) await attach(graph, i, draft.id, file);
}

async function finish(graph, i, draft) {
  await attachAll(graph, i, draft);
  if (!i.draft_only) await user(graph, i).messages.byMessageId(draft.id).send.post();
}

const messages = (graph, i) => (i.folder ? user(graph, i).mailFolders.byMailFolderId(i.folder).messages : user(graph, i).messages);
const calendar = (graph, i) => (i.calendar ? user(graph, i).calendars.byCalendarId(i.calendar) : user(graph, i).calendar);
const when = (time, zone = "UTC") =>
  time && {
    dateTime: time.length === 10 ? `${time}T00:00:00` : new Date(time).toLocaleString("sv-SE", { timeZone: zone }).replace(" ", "T"),
    timeZone: zone,
  };
const startOfTests = Date.parse("2026-11-18T09:00:00Z");
const start = "2026-11-18T08:45:00Z"; // of the first poll: a quarter of an hour ago

// since reads a page of what was created or changed since the cursor.
const since = (builder, field, i, top, more = {}) =>
  builder.get({ ...more, queryParameters: { ...more.queryParameters, filter: `${field} ge ${utc(i.cursor?.since ?? start)}`, orderby: [field], top, skip: i.cursor?.skip } });

// subscription registers, renews or removes what a hook is.
async function subscription({ sender }, i, changeType, resource) {
  const { subscriptions } = createSubscriptionsServiceClient(sender);
  const expirationDateTime = new Date(startOfTests + 70 * 3600000);
  switch (i.does) {
    case "register":
      return subscriptions.post({ changeType, notificationUrl: i.hook.url, resource: `${i.mailbox ? `users/${i.mailbox}` : "me"}/${resource}`, expirationDateTime, clientState: i.hook.secret });
    case "renew":
      return subscriptions.bySubscriptionId(i.subscription.id).patch({ expirationDateTime });
    default:
      return subscriptions
        .bySubscriptionId(i.subscription.id)
        .delete()
        .catch((error) => {
          if (error.responseStatusCode !== 404) throw error;
        });
  }
}
const after = (time, hours) => new Date(Date.parse(time) + hours * 3600000).toISOString();

/** @returns {import("@microsoft/msgraph-sdk/models/index.js").Event} */
const event = (i) => ({
  subject: i.title,
  body: i.description === undefined ? undefined : { contentType: BodyTypeObject.Html, content: i.description },
  start: when(i.start, i.time_zone),
  end: when(i.end, i.time_zone),
  location: i.location && { displayName: i.location },
  reminderMinutesBeforeStart: i.reminder,
  isReminderOn: i.reminder === undefined ? undefined : true,
  showAs: i.show_as,
  categories: i.categories,
});

/** @returns {import("@microsoft/msgraph-sdk/models/index.js").Attendee[]} */
const attendees = (required = [], optional = []) => [
  ...required.map((address) => ({ emailAddress: { address }, type: AttendeeTypeObject.Required })),
  ...optional.map((address) => ({ emailAddress: { address }, type: AttendeeTypeObject.Optional })),
];

/** @returns {import("@microsoft/msgraph-sdk/models/index.js").Contact} */
const contact = (i) => ({
  givenName: i.first_name,
  surname: i.last_name,
  companyName: i.company,
  jobTitle: i.job_title,
  mobilePhone: i.mobile,
  businessPhones: i.phone && [i.phone],
  personalNotes: i.notes,
  categories: i.categories,
});

/** @type {import("../service.d.ts").Service<{client: import("@microsoft/msgraph-sdk-users/usersServiceClient.js").UsersServiceClient, sender: any, environment: import("../service.d.ts").Environment}>} */
export default {
  client: ["@microsoft/msgraph-sdk", "@microsoft/msgraph-sdk-users", "@microsoft/msgraph-sdk-subscriptions", "@microsoft/microsoft-graph-client"],
  auth: "oauth2",
  secrets: { access_token: "made-up" },
  headers: ["prefer", "content-range"],
  connect: (environment) => {
    const sender = adapter(environment, { Prefer: 'IdType="ImmutableId"' });
    return { client: createUsersServiceClient(sender), sender, environment };
  },
  operations: {
    "hooks/mail": (graph, i) => subscription(graph, i, "created", `mailFolders/${i.folder}/messages`),
    "hooks/calendar": (graph, i) => subscription(graph, i, "created,updated", "events"),
    send_message: async (graph, i) => {
      if (i.attachments?.filter(({ content }) => content.length >= large).length > 3) {
        await user(graph, i).mailFolders.byMailFolderId("drafts").get({ queryParameters: { select: ["id"] } });
        return;
      }
      for (let attempt = 0; ; attempt++) {
        const draft = await user(graph, i).messages.post(message(i, attempt));
        try {
          return await finish(graph, i, draft);
        } catch (error) {
          if (error.error?.code !== "UploadSessionNotFound") throw error; // otherwise, again with a new draft
        }
      }
    },
    reply_to_message: async (graph, i) => {
      const original = user(graph, i).messages.byMessageId(i.message);
      const reply = i.html ? { message: { body: { contentType: BodyTypeObject.Html, content: i.html } } } : { comment: i.text ?? "" };
      await finish(graph, i, await (i.everyone ? original.createReplyAll : original.createReply).post(reply));
    },
    forward_message: async (graph, i) =>
      finish(graph, i, await user(graph, i).messages.byMessageId(i.message).createForward.post({ toRecipients: recipients(i.to), comment: i.text ?? "" })),
    create_draft: async (graph, i) => attachAll(graph, i, await user(graph, i).messages.post(message(i))),
    attach_file: (graph, i) =>
      attach(graph, i, i.message, { ...i.file, name: i.name ?? i.file.name }, i.content_id ? { contentId: i.content_id, isInline: true } : {}),
    send_draft: (graph, i) => user(graph, i).messages.byMessageId(i.message).send.post(),
    get_message: async (graph, i) => {
      const builder = user(graph, i).messages.byMessageId(i.message);
      const got = await builder.get({
        queryParameters: {
          select: "id subject from sender toRecipients ccRecipients bccRecipients replyTo receivedDateTime sentDateTime body bodyPreview isRead isDraft hasAttachments importance categories flag conversationId parentFolderId internetMessageId webLink".split(" "),
          expand: ["attachments($select=id,name,contentType,size,isInline)"],
        },
        headers: { Prefer: `IdType="ImmutableId", outlook.body-content-type="${i.as_text ? "text" : "html"}"` },
      });
      for (const attachment of i.download ? got.attachments : []) {
        if (attachment.odataType !== "#microsoft.graph.fileAttachment") continue;
        const { URL } = builder.attachments.byAttachmentId(attachment.id).toGetRequestInformation();
        await send(graph.sender, "GET", `${URL}/$value`); // as the documentation says
      }
    },
    list_messages: (graph, i) =>
      list(
        messages(graph, i),
        {
          filter: [
            `receivedDateTime ge ${i.since ? utc(i.since) : "1900-01-01T00:00:00Z"}`,
            i.until && `receivedDateTime lt ${utc(i.until)}`,
            i.unread !== undefined && `isRead eq ${!i.unread}`,
            i.from && `from/emailAddress/address eq ${quoted(i.from)}`,
            i.subject && `contains(subject, ${quoted(i.subject)})`,
            i.attachments !== undefined && `hasAttachments eq ${i.attachments}`,
            i.importance && `importance eq '${i.importance}'`,
            i.category && `categories/any(c:c eq ${quoted(i.category)})`,
          ]
            .filter(Boolean)
            .join(" and "),
          orderby: ["receivedDateTime desc"],
          select,
        },
        i,
      ),
    "triggers/new_message": (graph, i) =>
      since(messages(graph, { folder: "inbox", ...i }), "receivedDateTime", i, 20, {
        queryParameters: { select: "id subject from toRecipients ccRecipients receivedDateTime body bodyPreview isRead isDraft hasAttachments importance categories conversationId parentFolderId internetMessageId webLink".split(" ") },
        headers: { Prefer: `IdType="ImmutableId", outlook.body-content-type="text"` },
      }),
    search_messages: (graph, i) => list(messages(graph, i), { search: JSON.stringify(i.search), select }, i),
    update_message: (graph, i) =>
      user(graph, i)
        .messages.byMessageId(i.message)
        .patch({ isRead: i.read, flag: i.flag && { flagStatus: i.flag }, categories: i.categories, importance: i.importance }),
    move_message: (graph, i) => user(graph, i).messages.byMessageId(i.message).move.post({ destinationId: i.folder }),
    delete_message: (graph, i) => user(graph, i).messages.byMessageId(i.message).delete(),
    list_folders: (graph, i) => list(user(graph, i).mailFolders, { expand: ["childFolders"] }, i),
    create_folder: (graph, i) =>
      (i.folder ? user(graph, i).mailFolders.byMailFolderId(i.folder).childFolders : user(graph, i).mailFolders).post({ displayName: i.name }),
    create_event: (graph, i) => {
      const wholeDays = i.start.length === 10;
      return calendar(graph, i).events.post({
        ...event(i),
        transactionId: steps.only,
        isAllDay: wholeDays ? true : undefined,
        end: when(wholeDays ? (i.end ?? after(i.start, 24)).slice(0, 10) : (i.end ?? after(i.start, 1)), i.time_zone),
        attendees: i.guests || i.optional_guests ? attendees(i.guests, i.optional_guests) : undefined,
        isOnlineMeeting: i.teams,
        onlineMeetingProvider: i.teams && OnlineMeetingProviderTypeObject.TeamsForBusiness,
        sensitivity: i.private && SensitivityObject.Private,
        singleValueExtendedProperties: [{ id, value: steps.only }],
      });
    },
    update_event: (graph, i) =>
      user(graph, i)
        .events.byEventId(i.event)
        .patch({ ...event(i), isAllDay: i.start && i.start.length === 10, attendees: i.guests && attendees(i.guests) }),
    get_event: (graph, i) => user(graph, i).events.byEventId(i.event).get(),
    list_events: (graph, i) => {
      const from = i.from ?? "2026-11-18T09:00:00Z";
      return list(calendar(graph, i).calendarView, { startDateTime: utc(from), endDateTime: utc(i.until ?? after(from, 720)), orderby: ["start/dateTime"] }, i);
    },
    "triggers/new_event": (graph, i) => since(calendar(graph, i).events, "createdDateTime", i, 50),
    "triggers/event_changed": (graph, i) => since(calendar(graph, i).events, "lastModifiedDateTime", i, 50),
    delete_event: (graph, i) => user(graph, i).events.byEventId(i.event).delete(),
    list_calendars: (graph, i) => list(user(graph, i).calendars, { select: ["id", "name", "canEdit", "isDefaultCalendar", "owner"] }, i),
    create_contact: (graph, i) =>
      user(graph, i).contacts.post({
        ...contact(i),
        emailAddresses: i.email && [{ address: i.email, name: [i.first_name, i.last_name].filter(Boolean).join(" ") }],
        singleValueExtendedProperties: [{ id, value: steps.only }],
      }),
    update_contact: (graph, i) =>
      user(graph, i)
        .contacts.byContactId(i.contact)
        .patch({ ...contact(i), emailAddresses: i.email && [{ address: i.email }] }),
    list_contacts: (graph, i) => list(user(graph, i).contacts, { filter: i.email && `emailAddresses/any(a:a/address eq ${quoted(i.email)})` }, i),
  },
};
