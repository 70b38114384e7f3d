"""llama.cpp for tools/peers.py, through the C API that the xllamacpp wheel exports.

The wheel's own classes offer a server, which hides the logits; the functions of llama.h are in the same shared object.
Structs go by value there, so their layout matters: each is declared up to the last field that is set here, with room
behind it, and LlamaCpp() compares the defaults it gets back with those of llama.h before it trusts the offsets.
"""
import ctypes
import os

import numpy as np

F32, F16 = 0, 1  # ggml_type
NO_FLASH_ATTENTION = 0


class ModelParams(ctypes.Structure):
    _fields_ = [
        ("devices", ctypes.c_void_p), ("tensor_buft_overrides", ctypes.c_void_p),
        ("n_gpu_layers", ctypes.c_int32), ("split_mode", ctypes.c_int32), ("load_mode", ctypes.c_int32),
        ("lazy_mode", ctypes.c_int32), ("main_gpu", ctypes.c_int32),
        ("tensor_split", ctypes.c_void_p), ("progress_callback", ctypes.c_void_p),
        ("progress_callback_user_data", ctypes.c_void_p), ("kv_overrides", ctypes.c_void_p),
        ("vocab_only", ctypes.c_bool), ("check_tensors", ctypes.c_bool), ("use_extra_bufts", ctypes.c_bool),
        ("no_host", ctypes.c_bool), ("no_alloc", ctypes.c_bool), ("load_mtp", ctypes.c_bool),
        ("room", ctypes.c_char * 64)]


class ContextParams(ctypes.Structure):
    _fields_ = [
        ("n_ctx", ctypes.c_uint32), ("n_batch", ctypes.c_uint32), ("n_ubatch", ctypes.c_uint32),
        ("n_seq_max", ctypes.c_uint32), ("n_rs_seq", ctypes.c_uint32), ("n_outputs_max", ctypes.c_uint32),
        ("n_outputs_max_per_seq", ctypes.c_uint32), ("n_threads", ctypes.c_int32), ("n_threads_batch", ctypes.c_int32),
        ("ctx_type", ctypes.c_int32), ("rope_scaling_type", ctypes.c_int32), ("pooling_type", ctypes.c_int32),
        ("attention_type", ctypes.c_int32), ("flash_attn_type", ctypes.c_int32),
        ("rope_freq_base", ctypes.c_float), ("rope_freq_scale", ctypes.c_float), ("yarn_ext_factor", ctypes.c_float),
        ("yarn_attn_factor", ctypes.c_float), ("yarn_beta_fast", ctypes.c_float), ("yarn_beta_slow", ctypes.c_float),
        ("yarn_orig_ctx", ctypes.c_uint32), ("defrag_thold", ctypes.c_float),
        ("cb_eval", ctypes.c_void_p), ("cb_eval_user_data", ctypes.c_void_p),
        ("type_k", ctypes.c_int32), ("type_v", ctypes.c_int32),
        ("abort_callback", ctypes.c_void_p), ("abort_callback_data", ctypes.c_void_p),
        ("room", ctypes.c_char * 128)]


class KvOverride(ctypes.Structure):
    """Metadata said to the loader instead of the file. The value is 128 bytes: an integer's or a string's."""
    _fields_ = [
        ("tag", ctypes.c_int32), ("key", ctypes.c_char * 128), ("room", ctypes.c_int32), ("value", ctypes.c_char * 128)]

    @staticmethod
    def of(key, value):
        is_text = isinstance(value, str)
        override = KvOverride(tag=3 if is_text else 0, key=key.encode())
        data = value.encode() if is_text else value.to_bytes(8, "little")
        ctypes.memmove(ctypes.addressof(override) + KvOverride.value.offset, data, len(data))
        return override


class Batch(ctypes.Structure):
    _fields_ = [
        ("n_tokens", ctypes.c_int32), ("token", ctypes.POINTER(ctypes.c_int32)),
        ("embd", ctypes.POINTER(ctypes.c_float)), ("pos", ctypes.POINTER(ctypes.c_int32)),
        ("n_seq_id", ctypes.POINTER(ctypes.c_int32)),
        ("seq_id", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))), ("logits", ctypes.POINTER(ctypes.c_int8))]


MODEL_DEFAULTS = {"n_gpu_layers": -1, "split_mode": 1, "vocab_only": False, "use_extra_bufts": True}
CONTEXT_DEFAULTS = {"n_ctx": 512, "n_batch": 2048, "n_ubatch": 512, "n_seq_max": 1, "rope_scaling_type": -1,
                    "flash_attn_type": -1, "yarn_ext_factor": -1.0, "type_k": F16, "type_v": F16}
LOG = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)


class LoadError(Exception):
    """llama.cpp refused a file; the text is what it logged."""


class LlamaCpp:
    """The library: its version, its log, and models."""

    def __init__(self):
        import xllamacpp.xllamacpp as module
        import xllamacpp
        self.package = f"xllamacpp {xllamacpp.__version__}"
        self.api = ctypes.CDLL(module.__file__)
        api, pointer, i32, flag = self.api, ctypes.c_void_p, ctypes.c_int32, ctypes.c_bool
        text, ids, floats = ctypes.c_char_p, ctypes.POINTER(ctypes.c_int32), ctypes.POINTER(ctypes.c_float)
        for name, result, arguments in (
                ("llama_version", text, []),
                ("llama_print_system_info", text, []),
                ("llama_backend_init", None, []),
                ("llama_log_set", None, [LOG, pointer]),
                ("llama_model_default_params", ModelParams, []),
                ("llama_context_default_params", ContextParams, []),
                ("llama_model_load_from_file", pointer, [text, ModelParams]),
                ("llama_init_from_model", pointer, [pointer, ContextParams]),
                ("llama_model_get_vocab", pointer, [pointer]),
                ("llama_vocab_n_tokens", i32, [pointer]),
                ("llama_vocab_is_eog", flag, [pointer, i32]),
                ("llama_get_memory", pointer, [pointer]),
                ("llama_memory_clear", None, [pointer, flag]),
                ("llama_batch_init", Batch, [i32, i32, i32]),
                ("llama_batch_free", None, [Batch]),
                ("llama_decode", i32, [pointer, Batch]),
                ("llama_get_logits_ith", floats, [pointer, i32]),
                ("llama_tokenize", i32, [pointer, text, i32, ids, i32, flag, flag]),
                ("llama_detokenize", i32, [pointer, ids, i32, text, i32, flag, flag]),
                ("llama_free", None, [pointer]),
                ("llama_model_free", None, [pointer])):
            function = getattr(api, name)
            function.restype, function.argtypes = result, arguments
        self.lines = []
        self._log = LOG(lambda level, text, _: self.lines.append(text.decode("utf-8", "replace")))
        api.llama_log_set(self._log, None)
        api.llama_backend_init()
        for got, wanted in ((api.llama_model_default_params(), MODEL_DEFAULTS),
                            (api.llama_context_default_params(), CONTEXT_DEFAULTS)):
            for field, value in wanted.items():
                if getattr(got, field) != value:
                    raise RuntimeError(f"{self.package}: default {field} is {getattr(got, field)}, expected {value}: "
                                       "its llama.h has another layout than tools/peers_llama.py")

    def version(self):
        return f"llama.cpp {self.api.llama_version().decode()} ({self.package})"

    def system(self):
        return self.api.llama_print_system_info().decode().strip(" |")

    def load(self, path, **options):
        return LlamaModel(self, path, **options)


class LlamaModel:
    """One model and, from the first forward pass on, one context."""

    def __init__(self, library, path, n_ctx=1024, metadata=None):
        self.api, self.n_ctx = library.api, n_ctx
        api, self.model, self.context = library.api, None, None
        params = api.llama_model_default_params()
        params.use_extra_bufts = False  # no repacking: the plain kernels
        if metadata:
            overrides = (KvOverride * (len(metadata) + 1))(*(KvOverride.of(*item) for item in metadata.items()))
            params.kv_overrides = ctypes.addressof(overrides)
        library.lines.clear()
        self.model = api.llama_model_load_from_file(os.fsencode(path), params)
        if not self.model:
            said = [line.strip() for line in "".join(library.lines).splitlines() if "error" in line.lower()]
            raise LoadError(said[0] if said else "no reason given")
        self.vocabulary = api.llama_model_get_vocab(self.model)
        self.n_vocab = api.llama_vocab_n_tokens(self.vocabulary)

    def close(self):
        if self.context:
            self.api.llama_free(self.context)
        if self.model:
            self.api.llama_model_free(self.model)
        self.context = self.model = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _decode(self, ids, start, last_only):
        """Logits [rows, V] after the tokens `ids` at positions start, start + 1, ..."""
        batch = self.api.llama_batch_init(len(ids), 0, 1)
        try:
            batch.n_tokens = len(ids)
            for i, token in enumerate(ids):
                batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0] = token, start + i, 1, 0
                batch.logits[i] = not last_only or i == len(ids) - 1
            status = self.api.llama_decode(self.context, batch)
            if status != 0:
                raise RuntimeError(f"llama_decode returned {status} for {len(ids)} tokens at {start}")
            rows = [self.api.llama_get_logits_ith(self.context, i)
                    for i in ([len(ids) - 1] if last_only else range(len(ids)))]
            return np.stack([np.ctypeslib.as_array(row, (self.n_vocab,)) for row in rows])  # copies
        finally:
            self.api.llama_batch_free(batch)

    def _restart(self):
        """An empty context with the most exact settings there are: f32 KV cache, plain attention."""
        if self.context:
            self.api.llama_memory_clear(self.api.llama_get_memory(self.context), True)
            return
        params = self.api.llama_context_default_params()
        params.n_ctx = params.n_batch = params.n_ubatch = self.n_ctx
        params.n_outputs_max = params.n_outputs_max_per_seq = 0  # logits of every position
        params.n_threads = params.n_threads_batch = 1  # its threads wait spinning, which a busy machine punishes
        params.flash_attn_type = NO_FLASH_ATTENTION
        params.type_k = params.type_v = F32
        self.context = self.api.llama_init_from_model(self.model, params)
        if not self.context:
            raise RuntimeError("llama_init_from_model failed")

    def logits(self, ids):
        """[T, V] of one forward pass."""
        self._restart()
        return self._decode(ids, 0, last_only=False)

    def greedy(self, ids, n):
        """At most n most likely tokens after `ids`, up to and without an end-of-generation token; and the logits that
        decided them, one row more than tokens."""
        self._restart()
        rows, out = [self._decode(ids, 0, last_only=True)[0]], []
        while len(out) < n and not self.api.llama_vocab_is_eog(self.vocabulary, token := int(rows[-1].argmax())):
            rows.append(self._decode([token], len(ids) + len(out), last_only=True)[0])
            out.append(token)
        return out, rows

    def tokenize(self, text, parse_special=True):
        data = text.encode()
        room = len(data) + 8
        ids = (ctypes.c_int32 * room)()
        n = self.api.llama_tokenize(self.vocabulary, data, len(data), ids, room, False, parse_special)
        if n < 0:
            raise RuntimeError(f"llama_tokenize wants room for {-n} tokens, {room} given")
        return list(ids[:n])

    def detokenize(self, ids, specials=True):
        room = 64 * len(ids) + 64
        text, given = ctypes.create_string_buffer(room), (ctypes.c_int32 * len(ids))(*ids)
        n = self.api.llama_detokenize(self.vocabulary, given, len(ids), text, room, False, specials)
        if n < 0:
            raise RuntimeError(f"llama_detokenize wants {-n} bytes, {room} given")
        return text.raw[:n].decode("utf-8", "replace")
