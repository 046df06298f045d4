import { FileUpload, OneDriveLargeFileUploadTask } from "@microsoft/microsoft-graph-client";
import { BodyTypeObject, ChannelMembershipTypeObject, ChatTypeObject } from "@microsoft/msgraph-sdk/models/index.js";
import { createChatsServiceClient } from "@microsoft/msgraph-sdk-chats/chatsServiceClient.js";
import { createTeamsServiceClient } from "@microsoft/msgraph-sdk-teams/teamsServiceClient.js";
import { createUsersServiceClient } from "@microsoft/msgraph-sdk-users/usersServiceClient.js";
import "@pnp/graph/files/index.js";
import { adapter, list, oldClient, pnp } from "../microsoft.mjs";

const escape = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&#34;").replaceAll("'", "&#39;");
const html = (text = "") => escape(text).replaceAll("\n", "<br>");

/** @returns {import("@microsoft/msgraph-sdk/models/index.js").ChatMessage} */
function message(i) {
  const before = i.mentions?.map(({ name }, at) => `<at id="${at}">${escape(name)}</at> `).join("") ?? "";
  return {
    subject: i.subject,
    importance: i.importance,
    body:
      i.html || i.mentions
        ? { contentType: BodyTypeObject.Html, content: before + (i.html ?? html(i.text)) }
        : { contentType: BodyTypeObject.Text, content: i.text ?? "" },
    mentions: i.mentions?.map(({ user, name }, id) => ({
      id,
      mentionText: name,
      mentioned: { user: { id: user, displayName: name, additionalData: { userIdentityType: "aadUser" } } },
    })),
  };
}

// The client leaves out the members of types that are derived from others, and has none for a reference.
const member = (user, roles) => ({
  odataType: "#microsoft.graph.aadUserConversationMember",
  roles,
  additionalData: { "user@odata.bind": `https://graph.microsoft.com/v1.0/users('${user.replaceAll("'", "''")}')` },
});

/** @returns {import("@microsoft/msgraph-sdk-teams/teams/item/channels/item/index.js").ChannelItemRequestBuilder} */
const channel = ({ teams }, i) => teams.byTeamId(i.team).channels.byChannelId(i.channel);
/** @returns {import("@microsoft/msgraph-sdk-users/users/item/index.js").UserItemRequestBuilder} */
const user = ({ users, me }, i) => (i.user ? users.byUserId(i.user) : me);
const id = async ({ me }) => (await me.get({ queryParameters: { select: ["id"] } })).id;
const typeOf = (name) => ({ pdf: "application/pdf", txt: "text/plain; charset=utf-8", zip: "application/zip" })[name.split(".").pop()];

async function upload({ environment }, folder, name, content, conflictBehavior = "rename") {
  const { driveId } = folder.parentReference;
  if (content.length < 4000000) {
    /** @type {any} */
    const graph = pnp(environment);
    return graph.drives.getById(driveId).getItemById(folder.id).upload({ content, filePathName: encodeURIComponent(name), contentType: typeOf(name) });
  }
  const uploadSessionURL = `/drives/${driveId}/items/${folder.id}:/${encodeURIComponent(name)}:/createUploadSession`;
  const options = { fileName: name, conflictBehavior, uploadSessionURL, rangeSize: 9830400 };
  const task = await OneDriveLargeFileUploadTask.createTaskWithFileObject(oldClient(environment), new FileUpload(content, name, content.length), options);
  task["uploadSession"].url = task["uploadSession"].url.replace(environment.at("https://"), "https://"); // it knows only https
  const { responseBody } = await task.upload();
  return /** @type {any} */ (responseBody);
}

/**
 * @type {import("../service.d.ts").Service<{
 *   teams: import("@microsoft/msgraph-sdk-teams/teams/index.js").TeamsRequestBuilder,
 *   chats: import("@microsoft/msgraph-sdk-chats/chats/index.js").ChatsRequestBuilder,
 *   users: import("@microsoft/msgraph-sdk-users/users/index.js").UsersRequestBuilder,
 *   me: import("@microsoft/msgraph-sdk-users/users/item/index.js").UserItemRequestBuilder,
 *   environment: import("../service.d.ts").Environment}>}
 */
export default {
  client: ["@microsoft/msgraph-sdk", "@microsoft/msgraph-sdk-teams", "@microsoft/msgraph-sdk-chats", "@microsoft/msgraph-sdk-users", "@pnp/graph", "@microsoft/microsoft-graph-client"],
  auth: "oauth2",
  secrets: { access_token: "made-up" },
  headers: ["content-range"],
  connect: (environment) => {
    const sender = adapter(environment);
    const { users, me } = createUsersServiceClient(sender);
    return { teams: createTeamsServiceClient(sender).teams, chats: createChatsServiceClient(sender).chats, users, me, environment };
  },
  operations: {
    send_channel_message: (graph, i) => channel(graph, i).messages.post(message(i)),
    reply_to_channel_message: (graph, i) => channel(graph, i).messages.byChatMessageId(i.message).replies.post(message(i)),
    send_chat_message: ({ chats }, i) => chats.byChatId(i.chat).messages.post(message(i)),
    send_direct_message: async (graph, i) => {
      const members = [member(await id(graph), ["owner"]), member(i.user, ["owner"])];
      const chat = await create(graph, { chatType: ChatTypeObject.OneOnOne, members });
      await graph.chats.byChatId(chat.id).messages.post(message(i));
    },
    send_file: async (graph, i) => {
      const folder = await channel(graph, i).filesFolder.get();
      const file = await upload(graph, folder, (i.name ?? i.file.name).replace(/[:*?"<>|/]/g, "_"), i.file.content, i.if_exists);
      const key = /[0-9A-F-]{36}/i.exec(file.eTag)[0].toLowerCase();
      await channel(graph, i).messages.post({
        body: { contentType: BodyTypeObject.Html, content: `${html(i.text)}<attachment id="${key}"></attachment>` },
        attachments: [{ id: key, contentType: "reference", contentUrl: file.webUrl, name: file.name }],
      });
    },
    list_channel_messages: (graph, i) => list(channel(graph, i).messages, {}, i, 50),
    list_replies: (graph, i) => list(channel(graph, i).messages.byChatMessageId(i.message).replies, {}, i, 50),
    list_chat_messages: ({ chats }, i) => {
      const conditions = [
        i.since && `lastModifiedDateTime gt ${new Date(i.since).toISOString()}`,
        i.until && `lastModifiedDateTime lt ${new Date(i.until).toISOString()}`,
      ].filter(Boolean);
      const orderby = [conditions.length > 0 ? "lastModifiedDateTime desc" : "createdDateTime desc"];
      return list(chats.byChatId(i.chat).messages, { filter: conditions.join(" and ") || undefined, orderby }, i, 50);
    },
    "triggers/new_channel_message": (graph, i) => {
      const { delta } = channel(graph, i).messages;
      if (i.cursor) return delta.withUrl(graph.environment.at(i.cursor.link)).get();
      return delta.get({ queryParameters: { filter: "lastModifiedDateTime gt 2026-11-18T09:00:00.000Z", top: 50 } });
    },
    "triggers/new_chat_message": ({ chats, environment }, i) => {
      const { messages } = chats.byChatId(i.chat);
      if (i.cursor?.link) return messages.withUrl(environment.at(i.cursor.link)).get();
      const filter = `lastModifiedDateTime gt ${i.cursor?.since ?? "2026-11-18T08:45:00.000Z"}`;
      return messages.get({ queryParameters: { filter, orderby: ["lastModifiedDateTime desc"], top: 50 } });
    },
    react_to_message: (graph, i) =>
      (i.chat ? graph.chats.byChatId(i.chat) : channel(graph, i)).messages.byChatMessageId(i.message).setReaction.post({ reactionType: i.reaction }),
    list_teams: (graph, i) => user(graph, i).joinedTeams.get(),
    list_channels: ({ teams }, i) => teams.byTeamId(i.team).channels.get(),
    create_channel: ({ teams }, i) =>
      teams.byTeamId(i.team).channels.post({ displayName: i.name, description: i.description, membershipType: ChannelMembershipTypeObject.Standard }),
    list_members: ({ teams }, i) => list(teams.byTeamId(i.team).members, {}, i),
    add_member: ({ teams }, i) => teams.byTeamId(i.team).members.post(member(i.user, i.owner ? ["owner"] : [])),
    list_chats: (graph, i) => list(user(graph, i).chats, { expand: ["members"] }, i, 50),
    create_chat: async (graph, i) => {
      const people = [await id(graph), ...i.people];
      await create(graph, { chatType: ChatTypeObject.Group, topic: i.topic, members: people.map((one) => member(one, ["owner"])) });
    },
    list_users: ({ users }, i) => {
      const text = i.search?.replaceAll("'", "''");
      const filter = i.search && `startswith(displayName,'${text}') or startswith(mail,'${text}') or startswith(userPrincipalName,'${text}')`;
      return list(users, { filter, select: ["id", "displayName", "mail", "userPrincipalName"] }, i);
    },
  },
  differences: [
    {
      operation: "send_file",
      test: "a small file",
      request: 2,
      at: "query",
      ours: { "@microsoft.graph.conflictBehavior": "rename" },
      why: "PnPjs always replaces a file; the documentation of the resource has it in the URL",
    },
  ],
};

/**
 * create creates a chat.
 * @param {{chats: import("@microsoft/msgraph-sdk-chats/chats/index.js").ChatsRequestBuilder}} graph
 * @param {import("@microsoft/msgraph-sdk/models/index.js").Chat} chat
 */
async function create({ chats }, chat) {
  return chats.post(chat);
}
