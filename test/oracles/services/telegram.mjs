import { Api, InputFile } from "grammy";

const file = ({ name, content }) => new InputFile(content, name);
const keyboard = (buttons) => buttons && { inline_keyboard: buttons };
const preview = (i) => (i.no_preview ? { is_disabled: true } : undefined);
/** @type {(i: any) => NonNullable<Parameters<Api["sendMessage"]>[2]>} */
const common = (i) => ({
  message_thread_id: i.topic,
  parse_mode: i.parse_mode,
  disable_notification: i.silent,
  reply_parameters: i.reply_to && { message_id: i.reply_to },
  reply_markup: keyboard(i.buttons),
});
/** @type {(i: any) => NonNullable<Parameters<Api["sendPhoto"]>[2]>} */
const media = (i) => ({ caption: i.caption, ...common(i) });

/** @type {NonNullable<NonNullable<Parameters<Api["setWebhook"]>[1]>["allowed_updates"]>} */
const updates = ["message", "edited_message", "channel_post", "edited_channel_post", "callback_query", "my_chat_member", "chat_member"];

/** @type {import("../service.d.ts").Service<import("grammy").Api>} */
export default {
  client: "grammy",
  auth: "api_key",
  secrets: { token: "123456:made-up" },
  connect: ({ at, secrets }) => new Api(secrets.token, { apiRoot: at("https://api.telegram.org") }),
  operations: {
    "hooks/updates": (api, i) => (i.does === "register" ? api.setWebhook(i.hook.url, { secret_token: i.hook.secret, allowed_updates: updates }) : api.deleteWebhook()),
    send_message: (api, i) => api.sendMessage(i.chat, i.text, { ...common(i), link_preview_options: preview(i) }),
    send_photo: (api, i) => api.sendPhoto(i.chat, file(i.photo), media(i)),
    send_document: (api, i) => api.sendDocument(i.chat, file(i.document), media(i)),
    send_video: (api, i) => api.sendVideo(i.chat, file(i.video), media(i)),
    send_media: (api, i) => {
      const methods = {
        photo: "sendPhoto",
        video: "sendVideo",
        document: "sendDocument",
        animation: "sendAnimation",
        audio: "sendAudio",
        voice: "sendVoice",
      };
      return api[methods[i.type]](i.chat, i.media, media(i));
    },
    send_location: (api, i) => api.sendLocation(i.chat, i.latitude, i.longitude, { disable_notification: i.silent }),
    send_poll: (api, i) =>
      api.sendPoll(i.chat, i.question, i.options, {
        is_anonymous: i.public ? false : undefined,
        allows_multiple_answers: i.multiple,
        disable_notification: i.silent,
      }),
    show_activity: (api, i) => api.sendChatAction(i.chat, i.action ?? "typing"),
    edit_message: (api, i) =>
      api.editMessageText(i.chat, i.message, i.text, {
        parse_mode: i.parse_mode,
        link_preview_options: preview(i),
        reply_markup: keyboard(i.buttons),
      }),
    delete_message: (api, i) => api.deleteMessage(i.chat, i.message),
    forward_message: (api, i) => api.forwardMessage(i.chat, i.from_chat, i.message, { disable_notification: i.silent }),
    pin_message: (api, i) => api.pinChatMessage(i.chat, i.message, { disable_notification: i.silent }),
    unpin_message: (api, i) => api.unpinChatMessage(i.chat, i.message),
    set_reaction: (api, i) => api.setMessageReaction(i.chat, i.message, i.emoji ? [{ type: "emoji", emoji: i.emoji }] : []),
    answer_callback: (api, i) => api.answerCallbackQuery(i.callback, { text: i.text, show_alert: i.alert, url: i.url }),
    get_chat: (api, i) => api.getChat(i.chat),
    get_member: (api, i) => api.getChatMember(i.chat, i.user),
    get_file: async (api, i, { at, secrets }) => {
      const { file_path } = await api.getFile(i.file_id);
      await fetch(at(`https://api.telegram.org/file/bot${secrets.token}/${file_path}`)); // as grammY's guide says
    },
  },
  // grammY sends each file as a part with a random name, and refers to it as attach://name.
  normalize: ({ multipart = {} }) => {
    for (const [name, value] of Object.entries(multipart)) {
      const attached = /^attach:\/\/(.*)$/.exec(value)?.[1];
      if (attached !== undefined) {
        multipart[name] = multipart[attached];
        delete multipart[attached];
      }
    }
  },
  differences: ["photo", "document", "video"].map((name) => ({
    at: `multipart/${name}/type`,
    client: "application/octet-stream",
    ours: name === "document" ? "application/pdf" : "image/png",
    why: "grammY does not know the types of files",
  })),
};
