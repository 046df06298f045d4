import { createHash } from "node:crypto";
import { REST, makeURLSearchParams } from "@discordjs/rest";
import { Routes } from "discord-api-types/v10";

/** @typedef {import("discord-api-types/v10").RESTPostAPIChannelMessageJSONBody} Message */

// nonce returns what Stepmill makes of the key of a request, which is the same in all tests.
const nonce = (call) => createHash("sha256").update(`run_1/step/${call}`).digest("hex").slice(0, 25);

/** @returns {Message} */
const message = (i, call) => ({
  content: i.text,
  embeds: i.embeds,
  message_reference: i.reply_to && { message_id: i.reply_to },
  allowed_mentions: i.no_mentions ? { parse: [] } : undefined,
  flags: (i.no_preview ? 4 : 0) | (i.silent ? 4096 : 0) || undefined,
  nonce: nonce(call),
  enforce_nonce: true,
});

// list reads pages until there are enough items.
async function list(discord, route, size, query, cursor, { limit = 100, all }) {
  const full = all ? size : Math.min(limit, size);
  let count = 0;
  for (;;) {
    const page = await discord.get(route, { query: makeURLSearchParams({ ...query, limit: full }) });
    count += page.length;
    if (page.length < full || (!all && count >= limit)) return;
    query = { ...query, ...cursor(page.at(-1)) };
  }
}

// snowflake returns an ID that was made at a time.
const snowflake = (time) => String(BigInt(Date.parse(time) - 1420070400000) << 22n);

/** @type {import("../service.d.ts").Service<import("@discordjs/rest").REST>} */
export default {
  client: ["@discordjs/rest", "discord-api-types"],
  auth: "api_key",
  secrets: { token: "made-up" },
  connect: ({ at, secrets }) => new REST({ api: at("https://discord.com/api"), retries: 0, rejectOnRateLimit: () => true }).setToken(secrets.token),
  operations: {
    send_message: (discord, i) => {
      const files = i.files?.map(({ name, content }) => ({ name, data: content, contentType: `${name.endsWith(".csv") ? "text/csv" : "text/plain"}; charset=utf-8` }));
      return discord.post(Routes.channelMessages(i.channel), { body: message(i, files ? "with_files" : "plain"), files });
    },
    send_direct_message: async (discord, i) => {
      /** @type {import("discord-api-types/v10").RESTPostAPICurrentUserCreateDMChannelJSONBody} */
      const body = { recipient_id: i.user };
      const { id } = /** @type {import("discord-api-types/v10").APIDMChannel} */ (await discord.post(Routes.userChannels(), { body }));
      await discord.post(Routes.channelMessages(id), { body: message(i, "message") });
    },
    update_message: (discord, i) => {
      /** @type {import("discord-api-types/v10").RESTPatchAPIChannelMessageJSONBody} */
      const body = { content: i.text, embeds: i.embeds };
      return discord.patch(Routes.channelMessage(i.channel, i.message), { body });
    },
    delete_message: (discord, i) => discord.delete(Routes.channelMessage(i.channel, i.message)),
    get_message: (discord, i) => discord.get(Routes.channelMessage(i.channel, i.message)),
    list_messages: (discord, i) => {
      /** @type {import("discord-api-types/v10").RESTGetAPIChannelMessagesQuery} */
      const query = { before: i.until && snowflake(i.until) };
      return list(discord, Routes.channelMessages(i.channel), 100, query, ({ id }) => ({ before: id }), i);
    },
    "triggers/new_message": (discord, i) => {
      /** @type {import("discord-api-types/v10").RESTGetAPIChannelMessagesQuery} */
      const query = i.cursor ? { after: i.cursor, limit: 50 } : { limit: 1 };
      return discord.get(Routes.channelMessages(i.channel), { query: makeURLSearchParams(query) });
    },
    add_reaction: (discord, i) => discord.put(Routes.channelMessageOwnReaction(i.channel, i.message, encodeURIComponent(i.emoji))),
    create_thread: (discord, i) => {
      /** @type {import("discord-api-types/v10").RESTPostAPIChannelThreadsJSONBody} */
      const body = { name: i.name, type: i.message ? undefined : i.private ? 12 : 11, auto_archive_duration: i.archive_after };
      return discord.post(Routes.threads(i.channel, i.message), { body });
    },
    create_forum_post: (discord, i) => {
      /** @type {import("discord-api-types/v10").RESTPostAPIGuildForumThreadsJSONBody} */
      const body = { name: i.name, message: { content: i.text }, applied_tags: i.tags };
      return discord.post(Routes.threads(i.channel), { body });
    },
    create_channel: (discord, i) => {
      /** @type {import("discord-api-types/v10").RESTPostAPIGuildChannelJSONBody} */
      const body = { name: i.name, type: { text: 0, announcements: 5, forum: 15, voice: 2, category: 4 }[i.kind ?? "text"], topic: i.topic, parent_id: i.category };
      return discord.post(Routes.guildChannels(i.server), { body });
    },
    add_role: (discord, i) => discord.put(Routes.guildMemberRole(i.server, i.user, i.role)),
    remove_role: (discord, i) => discord.delete(Routes.guildMemberRole(i.server, i.user, i.role)),
    get_member: (discord, i) => discord.get(Routes.guildMember(i.server, i.user)),
    list_members: (discord, i) => {
      if (!i.search) return list(discord, Routes.guildMembers(i.server), 1000, {}, ({ user }) => ({ after: user.id }), i);
      /** @type {import("discord-api-types/v10").RESTGetAPIGuildMembersSearchQuery} */
      const query = { query: i.search, limit: i.limit ?? 100 };
      return discord.get(Routes.guildMembersSearch(i.server), { query: makeURLSearchParams(query) });
    },
    list_channels: (discord, i) => discord.get(Routes.guildChannels(i.server)),
    list_servers: (discord, i) => list(discord, Routes.userGuilds(), 200, {}, ({ id }) => ({ after: id }), i),
    list_roles: (discord, i) => discord.get(Routes.guildRoles(i.server)),
    list_categories: (discord, i) => discord.get(Routes.guildChannels(i.server)),
    list_forums: (discord, i) => discord.get(Routes.guildChannels(i.server)),
    list_tags: (discord, i) => discord.get(Routes.channel(i.channel)),
  },
};
