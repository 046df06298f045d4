import { Api, InputFile } from "grammy";

const file = ({ name, content }) => new InputFile(content, name);

export default {
  client: "grammy",
  auth: "api_key",
  secrets: { token: "123456:made-up" },
  connect: ({ at, secrets }) => new Api(secrets.token, { apiRoot: at("https://api.telegram.org") }),
  operations: {
    send_message: (api, i) =>
      api.sendMessage(i.chat, i.text, {
        parse_mode: i.parse_mode,
        disable_notification: i.silent,
        reply_parameters: i.reply_to && { message_id: i.reply_to },
        reply_markup: i.buttons && { inline_keyboard: i.buttons },
      }),
    send_photo: (api, i) => api.sendPhoto(i.chat, file(i.photo), { caption: i.caption }),
    get_file: async (api, i, { at, secrets }) => {
      const { file_path } = await api.getFile(i.file_id);
      await fetch(at(`https://api.telegram.org/file/bot${secrets.token}/${file_path}`)); // as grammY's guide says
    },
  },
  // grammY sends each file as a part with a random name, and refers to it as attach://name.
  normalize: ({ multipart = {} }) => {
    for (const [name, value] of Object.entries(multipart)) {
      const attached = /^attach:\/\/(.*)$/.exec(value)?.[1];
      if (attached === undefined) continue;
      multipart[name] = multipart[attached];
      delete multipart[attached];
    }
  },
  differences: [
    { at: "multipart/photo/type", client: "application/octet-stream", ours: "image/png", why: "grammY knows no types of files; Telegram looks at the content" },
  ],
};
