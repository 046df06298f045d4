import OpenAI, { toFile } from "openai";

const types = { png: "image/png", mp3: "audio/mpeg", txt: "text/plain; charset=utf-8" };
const file = ({ name, content }) => toFile(content, name, { type: types[name.split(".").pop()] });

// list reads pages until there are enough items.
async function list(size, { limit = 100, all }, read) {
  let count = 0;
  const first = await read({ limit: all ? size : Math.min(limit, size) });
  for await (const page of first.iterPages()) {
    count += page.data.length;
    if (!all && count >= limit) break;
  }
}

const models = (openai) => openai.models.list();

/** @type {import("../service.d.ts").Service<import("openai").default>} */
export default {
  client: "openai",
  auth: "bearer",
  secrets: { token: "sk-made-up" },
  headers: ["openai-beta"],
  connect: ({ at, secrets }) => new OpenAI({ apiKey: secrets.token, baseURL: at("https://api.openai.com/v1"), maxRetries: 0 }),
  operations: {
    create_image: ({ images }, i) => {
      const model = i.model ?? "gpt-image-1.5";
      return images.generate({
        prompt: i.prompt,
        model,
        size: i.size,
        quality: i.quality,
        background: i.background,
        output_format: i.format,
        n: i.count,
        response_format: model.startsWith("dall-e") ? "b64_json" : undefined,
      });
    },
    edit_image: async ({ images }, i) =>
      images.edit({
        image: await Promise.all(i.images.map(file)),
        prompt: i.prompt,
        mask: i.mask && (await file(i.mask)),
        model: i.model ?? "gpt-image-1.5",
        size: i.size,
        quality: i.quality,
        background: i.background,
        input_fidelity: i.fidelity,
        output_format: i.format,
        n: i.count,
      }),
    transcribe: async ({ audio }, i) => {
      const speakers = i.details === "speakers";
      await audio.transcriptions.create({
        file: await file(i.file),
        model: i.model ?? (i.details ? (speakers ? "gpt-4o-transcribe-diarize" : "whisper-1") : "gpt-4o-transcribe"),
        response_format: i.details ? (speakers ? "diarized_json" : "verbose_json") : "json",
        timestamp_granularities: i.details && !speakers ? [i.details.slice(0, -1)] : undefined,
        chunking_strategy: speakers ? "auto" : undefined,
        language: i.language,
        prompt: i.prompt,
      });
    },
    create_subtitles: async ({ audio }, i) =>
      audio.transcriptions.create({ file: await file(i.file), model: "whisper-1", response_format: i.format ?? "srt", language: i.language, prompt: i.prompt }),
    translate_audio: async ({ audio }, i) => audio.translations.create({ file: await file(i.file), model: "whisper-1", response_format: "json", prompt: i.prompt }),
    speak: ({ audio }, i) =>
      audio.speech.create({
        input: i.text,
        voice: i.voice ?? "alloy",
        model: i.model ?? "gpt-4o-mini-tts",
        instructions: i.instructions,
        response_format: i.format ?? "mp3",
        speed: i.speed,
      }),
    create_embedding: ({ embeddings }, i) =>
      embeddings.create({ input: i.text, model: i.model ?? "text-embedding-3-small", dimensions: i.dimensions, encoding_format: "float" }),
    create_embeddings: async ({ embeddings }, i) => {
      for (let from = 0; from < i.texts.length; from += 100)
        await embeddings.create({ input: i.texts.slice(from, from + 100), model: i.model ?? "text-embedding-3-small", dimensions: i.dimensions, encoding_format: "float" });
    },
    moderate: ({ moderations }, i) => {
      /** @type {import("openai").OpenAI.ModerationMultiModalInput[]} */
      const parts = [];
      if (i.text) parts.push({ type: "text", text: i.text });
      if (i.image) parts.push({ type: "image_url", image_url: { url: i.image } });
      return moderations.create({ model: i.model ?? "omni-moderation-latest", input: i.image ? parts : i.text });
    },
    upload_file: async ({ files }, i) =>
      files.create({
        file: await file(i.file),
        purpose: i.purpose ?? "user_data",
        expires_after: i.expires_days && { anchor: "created_at", seconds: i.expires_days * 86400 },
      }),
    list_files: ({ files }, i) => list(1000, i, (page) => files.list({ purpose: i.purpose, ...page })),
    get_file: ({ files }, i) => files.retrieve(i.file),
    download_file: async ({ files }, i) => {
      await files.retrieve(i.file);
      await files.content(i.file);
    },
    delete_file: ({ files }, i) => files.delete(i.file),
    create_vector_store: ({ vectorStores }, i) =>
      vectorStores.create({
        name: i.name,
        file_ids: i.files,
        expires_after: i.expires_days && { anchor: "last_active_at", days: i.expires_days },
        metadata: i.metadata,
      }),
    list_vector_stores: ({ vectorStores }, i) => list(100, i, (page) => vectorStores.list(page)),
    delete_vector_store: ({ vectorStores }, i) => vectorStores.delete(i.vector_store),
    add_to_vector_store: async ({ files, vectorStores }, i) => {
      const { id } = await files.create({ file: await file(i.file), purpose: "assistants" });
      await vectorStores.files.create(i.vector_store, { file_id: id, attributes: i.attributes });
    },
    list_vector_store_files: ({ vectorStores }, i) => list(100, i, (page) => vectorStores.files.list(i.vector_store, { filter: i.status, ...page })),
    remove_from_vector_store: ({ vectorStores }, i) => vectorStores.files.delete(i.file, { vector_store_id: i.vector_store }),
    search_vector_store: ({ vectorStores }, i) =>
      vectorStores.search(i.vector_store, { query: i.query, max_num_results: i.count ?? 10, filters: i.filters, rewrite_query: i.rewrite }),
    create_batch: async ({ batches, files }, i) => {
      const { id } = await files.create({ file: await file(i.file), purpose: "batch" });
      await batches.create({ input_file_id: id, endpoint: i.endpoint, completion_window: "24h", metadata: i.metadata });
    },
    get_batch: ({ batches }, i) => batches.retrieve(i.batch),
    download_batch_results: async ({ batches, files }, i) => {
      const { output_file_id, error_file_id } = await batches.retrieve(i.batch);
      if (output_file_id) await files.content(output_file_id);
      if (error_file_id) await files.content(error_file_id);
    },
    list_batches: ({ batches }, i) => list(100, i, (page) => batches.list(page)),
    cancel_batch: ({ batches }, i) => batches.cancel(i.batch),
    list_models: models,
    list_image_models: models,
    list_transcription_models: models,
    list_speech_models: models,
    list_embedding_models: models,
    list_moderation_models: models,
  },
};
