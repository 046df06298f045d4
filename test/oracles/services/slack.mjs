import { LogLevel, WebClient } from "@slack/web-api";

/** @type {(time: string) => any} */
const seconds = (time) => time && Date.parse(time) / 1000;

// list reads pages until there are enough items.
async function list(slack, method, member, params, { limit = 100, all }) {
  let count = 0;
  await slack.paginate(method, { ...params, limit: all ? 200 : Math.min(limit, 200) }, (page) => {
    count += page[member].length;
    return !all && count >= limit;
  });
}

/** @type {import("../service.d.ts").Service<import("@slack/web-api").WebClient>} */
export default {
  client: "@slack/web-api",
  auth: "bearer",
  secrets: { token: "xoxb-made-up" },
  connect: ({ at, secrets }) =>
    new WebClient(secrets.token, {
      slackApiUrl: at("https://slack.com/api/"),
      retryConfig: { retries: 0 },
      rejectRateLimitedCalls: true,
      logLevel: LogLevel.ERROR,
      logger: {
        setLevel() {},
        setName() {},
        getLevel: () => LogLevel.ERROR,
        debug() {},
        info() {},
        warn() {},
        error() {},
      },
    }),
  operations: {
    post_message: ({ chat }, i) =>
      chat.postMessage({
        channel: i.channel,
        text: i.text,
        thread_ts: i.thread,
        reply_broadcast: i.broadcast,
        blocks: i.blocks,
        unfurl_links: i.no_preview ? false : undefined,
        unfurl_media: i.no_preview ? false : undefined,
      }),
    send_direct_message: async ({ chat, conversations }, i) => {
      const { channel } = await conversations.open({ users: i.user });
      await chat.postMessage({ channel: channel.id, text: i.text, blocks: i.blocks });
    },
    schedule_message: ({ chat }, i) => chat.scheduleMessage({ channel: i.channel, text: i.text, post_at: seconds(i.at), thread_ts: i.thread }),
    update_message: ({ chat }, i) => chat.update({ channel: i.channel, ts: i.message, text: i.text, blocks: i.blocks }),
    delete_message: ({ chat }, i) => chat.delete({ channel: i.channel, ts: i.message }),
    add_reaction: ({ reactions }, i) => reactions.add({ channel: i.channel, timestamp: i.message, name: i.name }).catch(ignore("already_reacted")),
    list_messages: (slack, i) =>
      list(
        slack,
        "conversations.history",
        "messages",
        /** @satisfies {import("@slack/web-api").ConversationsHistoryArguments} */ ({
          channel: i.channel,
          oldest: seconds(i.since),
          latest: seconds(i.until),
        }),
        i,
      ),
    "triggers/new_message": ({ conversations }, i) =>
      conversations.history({ channel: i.channel, ...(i.cursor ? { oldest: i.cursor.oldest, limit: 50, cursor: i.cursor.page } : { limit: 1 }) }).catch(ignore("invalid_cursor")),
    list_replies: (slack, i) =>
      list(
        slack,
        "conversations.replies",
        "messages",
        /** @satisfies {import("@slack/web-api").ConversationsRepliesArguments} */ ({
          channel: i.channel,
          ts: i.message,
        }),
        i,
      ),
    search_messages: async ({ search }, i) => {
      for (let page = 1, pages = 1; page <= pages; page++) {
        const found = await search.messages({ query: i.query, sort: i.sort, sort_dir: i.sort_dir, count: 100, page });
        pages = found.messages.paging.pages;
      }
    },
    upload_file: (slack, i) =>
      slack.filesUploadV2({
        file: i.file.content,
        filename: i.file.name,
        title: i.title,
        channel_id: i.channel,
        initial_comment: i.comment,
        thread_ts: i.thread,
      }),
    get_file: async ({ files }, i, { secrets }) => {
      const { file } = await files.info({ file: i.file });
      await fetch(file.url_private_download, { headers: { Authorization: `Bearer ${secrets.token}` } }); // as Slack's documentation says
    },
    list_channels: (slack, i) =>
      list(
        slack,
        "conversations.list",
        "channels",
        /** @satisfies {import("@slack/web-api").ConversationsListArguments} */ ({
          types: "public_channel,private_channel",
          exclude_archived: true,
        }),
        i,
      ),
    get_channel: ({ conversations }, i) => conversations.info({ channel: i.channel }),
    create_channel: ({ conversations }, i) => conversations.create({ name: i.name, is_private: i.private }),
    invite_to_channel: ({ conversations }, i) => conversations.invite({ channel: i.channel, users: i.users.join(",") }),
    set_topic: ({ conversations }, i) => conversations.setTopic({ channel: i.channel, topic: i.topic }),
    list_users: (slack, i) => list(slack, "users.list", "members", {}, i),
    get_user: ({ users }, i) => users.info({ user: i.user }),
    find_user: ({ users }, i) => users.lookupByEmail({ email: i.email }),
  },
  differences: [
    {
      operation: "upload_file",
      request: 2,
      at: "headers/authorization",
      client: "Bearer xoxb-made-up",
      why: "the address is the permission; Slack's Python client sends no token either",
    },
    {
      operation: "upload_file",
      request: 2,
      at: "multipart",
      client: { body: { filename: "Untitled", type: "application/octet-stream", text: "%PDF-1.7" } },
      why: "Slack takes the bytes themselves too, which is what its Python client sends",
    },
    { operation: "upload_file", request: 2, at: "text", ours: "%PDF-1.7", why: "likewise" },
  ],
};

function ignore(code) {
  return (error) => {
    if (error.data?.error !== code) throw error;
  };
}
