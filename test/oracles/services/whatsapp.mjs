import { WhatsAppClient } from "@kapso/whatsapp-cloud-api";
import { WhatsAppAPI } from "whatsapp-api-js";
import * as build from "whatsapp-api-js/messages";

const types = { png: "image/png", jpg: "image/jpeg", pdf: "application/pdf", mp3: "audio/mpeg", html: "text/html; charset=utf-8" };
const type = ({ name }) => types[name.split(".").pop()];
const business = "102290129340398";

// upload returns the id of a file that is uploaded.
async function upload({ kapso }, phone, file) {
  const { id } = await kapso.media.upload({ phoneNumberId: phone, type: type(file).split(";")[0], file: new Blob([file.content], { type: type(file) }), fileName: file.name });
  return id;
}

// media returns a message with a file.
function media(kind, file, isID, { caption = undefined, name = undefined }) {
  switch (kind) {
    case "image":
      return new build.Image(file, isID, caption);
    case "video":
      return new build.Video(file, isID, caption);
    case "audio":
      return new build.Audio(file, isID);
    case "sticker":
      return new build.Sticker(file, isID);
    default:
      return new build.Document(file, isID, caption, name);
  }
}

const kind = (file) => ({ image: "image", video: "video", audio: "audio" })[type(file).split("/")[0]] ?? "document";

// parameters calls make for each value in the order of a template, with its name if it has one.
function parameters(values, make) {
  return Object.entries(values)
    .sort(([a], [b]) => (Number(a) - Number(b) || (a < b ? -1 : 1)))
    .map(([name, value]) => make(String(value), /^\d+$/.test(name) ? undefined : name));
}

/** @type {(list: any[], make: (...all: any) => any) => any} */
const component = (list, make) => (list.length > 0 ? [make(...list)] : []);

async function template(client, i) {
  const components = component(parameters(i.header ?? {}, (value, name) => new build.HeaderParameter(value, name)), (...all) => new build.HeaderComponent(.../** @type {[any]} */ (all)));
  if (i.header_file || i.header_url) {
    const file = i.header_file ? await upload(client, i.phone, i.header_file) : i.header_url;
    const message = media(i.header_type ?? (i.header_file ? kind(i.header_file) : "image"), file, Boolean(i.header_file), { name: i.header_file?.name });
    components.push(new build.HeaderComponent(new build.HeaderParameter(/** @type {any} */ (message))));
  }
  components.push(...component(parameters(i.body ?? {}, (value, name) => new build.BodyParameter(value, name)), (...all) => new build.BodyComponent(.../** @type {[any]} */ (all))));
  for (const { type, value } of i.buttons ?? []) {
    components.push(new { url: build.URLComponent, quick_reply: build.PayloadComponent, copy_code: build.CopyComponent }[type](value));
  }
  return new build.Template(i.template, i.language, ...components);
}

const header = (text) => text && new build.Header(text);
const footer = (text) => text && new build.Footer(text);

function contact(c) {
  const parts = [new build.Name(c.name, c.first_name ?? c.name, c.last_name)];
  /** @type {any[]} */
  const more = [];
  if (c.phone) more.push(new build.Phone(c.phone, undefined, c.whatsapp));
  if (c.email) more.push(new build.Email(c.email));
  if (c.company || c.job_title) more.push(new build.Organization(c.company, undefined, c.job_title));
  if (c.url) more.push(new build.Url(c.url));
  return [...parts, ...more];
}

/** @type {(make: (i: any, client: any) => any) => (client: any, i: any) => Promise<any>} */
const send = (make) => async (client, i) => client.whatsapp.sendMessage(i.phone, i.to, await make(i, client), i.reply_to);

// list reads pages until there are enough items.
async function list(kapso, query, { limit = 100, all }) {
  let count = 0;
  let after;
  do {
    const page = await kapso.templates.list({ businessAccountId: business, ...query, limit: all ? 100 : Math.min(limit, 100), after });
    count += page.data.length;
    after = page.paging?.next && page.paging.cursors.after;
  } while (after && (all || count < limit));
}

const named = ({ kapso }, i) => kapso.templates.list({ businessAccountId: business, name: i.template, limit: 100 });

/** @type {import("../service.d.ts").Service<{ whatsapp: WhatsAppAPI, kapso: WhatsAppClient }>} */
export default {
  client: ["whatsapp-api-js", "@kapso/whatsapp-cloud-api"],
  auth: "bearer",
  secrets: { token: "EAA-made-up" },
  connect: ({ at, secrets }) => ({
    whatsapp: new WhatsAppAPI({ token: secrets.token, secure: false, v: "v25.0", ponyfill: { fetch: /** @type {any} */ ((url, init) => fetch(at(String(url)), init)) } }),
    kapso: new WhatsAppClient({ accessToken: secrets.token, baseUrl: at("https://graph.facebook.com"), graphVersion: "v25.0" }),
  }),
  operations: {
    send_text: send((i) => new build.Text(i.text, i.preview)),
    send_template: send((i, client) => template(client, i)),
    send_media: send(async (i, client) => {
      const id = i.file ? await upload(client, i.phone, i.file) : i.media;
      return media(i.type ?? kind(i.file), id ?? i.url, id !== undefined, { caption: i.caption, name: i.name ?? i.file?.name });
    }),
    send_buttons: send(({ buttons, text, ...i }) => {
      const [first, ...others] = buttons.map(({ id, title }) => new build.Button(id ?? title, title));
      return new build.Interactive(new build.ActionButtons(first, ...others), new build.Body(text), header(i.header), footer(i.footer));
    }),
    send_list: send(({ sections, text, button, ...i }) => {
      const [first, ...others] = sections.map(({ title, rows }) => {
        const [row, ...more] = rows.map((one) => new build.Row(one.id ?? one.title, one.title, one.description));
        return new build.ListSection(title, row, ...more);
      });
      return new build.Interactive(new build.ActionList(button, first, ...others), new build.Body(text), header(i.header), footer(i.footer));
    }),
    send_link: send((i) => new build.Interactive(new build.ActionCTA(i.button, i.url), new build.Body(i.text), header(i.header), footer(i.footer))),
    send_location: send((i) => new build.Location(i.longitude, i.latitude, i.name, i.address)),
    send_contacts: send(({ contacts: [first, ...others] }) => new build.Contacts(contact(first), ...others.map(contact))),
    send_reaction: send((i) => new build.Reaction(i.message, i.emoji ?? "")),
    mark_as_read: ({ whatsapp }, i) => whatsapp.markAsRead(i.phone, i.message, i.typing ? "text" : undefined),
    upload_media: (client, i) => upload(client, i.phone, i.file),
    download_media: async ({ whatsapp }, i) => {
      const { url } = /** @type {any} */ (await whatsapp.retrieveMedia(i.media, i.phone));
      await whatsapp.fetchMedia(url);
    },
    delete_media: ({ whatsapp }, i) => whatsapp.deleteMedia(i.media, i.phone),
    list_templates: ({ kapso }, i) => list(kapso, { status: i.status }, i),
    get_profile: ({ kapso }, i) =>
      kapso.phoneNumbers.businessProfile.get({ phoneNumberId: i.phone, fields: "about,address,description,email,profile_picture_url,websites,vertical" }),
    list_template_names: ({ kapso }, i) => list(kapso, { status: "APPROVED" }, i),
    list_template_languages: named,
    list_body_fields: named,
    list_header_fields: named,
  },
  normalize: ({ json }) => {
    if (typeof json?.contacts === "string") json.contacts = JSON.parse(json.contacts); // the documentation has the list itself
  },
  without: {
    list_phone_numbers: "the clients cannot list them; whatsapp-business can",
    "hooks/messages": "the clients subscribe to nothing",
  },
};
