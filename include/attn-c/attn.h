/*===- attn.h - the compiler and its runtime for C programs -------- C -*-===*\
|*                                                                            *|
|* Part of attn, an attention compiler.                                       *|
|* Licensed under the Apache License v2.0 with LLVM Exceptions.               *|
|* See LICENSE for license information.                                       *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* Text in, artifacts and launches out. Handles are opaque and belong to the  *|
|* caller, who destroys them; strings and bytes that a handle returns live as *|
|* long as the handle. A function that returns a pointer returns NULL on      *|
|* failure, one that returns int returns 0 on success; attnErrorMessage()     *|
|* then says what went wrong. A function that gets or counts something (Get,  *|
|* Is) returns NULL or -1 on failure. NULL in place of a handle is a failure; *|
|* to destroy NULL does nothing. Handles may be used from several threads at  *|
|* once; destroying one while it is in use is an error of the caller.         *|
|*                                                                            *|
|* Two libraries have these functions. libattn has all of them.               *|
|* libattn-runtime (.so and .a) is for programs whose kernels are compiled:   *|
|* it has those under "Artifacts" and "Running" and the three in front, no    *|
|* compiler, and does without LLVM. A program that compiles does not link     *|
|* with it. A process takes one of the two. docs/artifact.md describes        *|
|* artifacts.                                                                 *|
|*                                                                            *|
|* The interface only grows: what is here stays, attnGetApiVersion() counts   *|
|* the additions. Structures carry their size, so that members may be added.  *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef ATTN_C_ATTN_H
#define ATTN_C_ATTN_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define ATTN_EXPORT __attribute__((visibility("default")))
#else
#define ATTN_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define ATTN_API_VERSION 13

/* ATTN_API_VERSION of the library that is loaded. */
ATTN_EXPORT int attnGetApiVersion(void);
/* "0.1.0". */
ATTN_EXPORT const char *attnGetVersion(void);
/* Why the last failed call of this thread failed; "" before any has. */
ATTN_EXPORT const char *attnErrorMessage(void);

/*===----------------------------------------------------------------------===*\
|* Compiling (in libattn only)                                                *|
\*===----------------------------------------------------------------------===*/

typedef struct AttnArtifact AttnArtifact; /* a compiled kernel, anywhere */
typedef struct AttnKernel AttnKernel;     /* a kernel that can be launched */

/* Since API version 11. The sizes of a launch, by which the rule of an artifact
   chooses: the third dimension of the query and of the key, the first times the
   second of the query, all 0 or more, and the multiprocessors of the GPU, 1 or
   more. Since API version 13 the first times the second of the key, too; 0: not
   known, a quarter of that of the query is assumed. */
typedef struct AttnLaunchSizes {
  size_t struct_size; /* sizeof(AttnLaunchSizes) */
  int64_t query_length;
  int64_t key_length;
  int64_t batch_heads;
  int64_t multiprocessors;
  int64_t batch_key_heads;
} AttnLaunchSizes;

/* Zero-initialise, set struct_size, set what is wanted. */
typedef struct AttnCompileOptions {
  size_t struct_size; /* sizeof(AttnCompileOptions) */
  /* "sm_80" or "sm_90a" for attnCompile; NULL stands for "sm_80". */
  const char *target;
  /* "#attn.plan<...>", or for a GPU a rule over several,
     "query_length <= 1024 -> #attn.plan<...>; #attn.plan<...>"; NULL or "": the
     compiler picks, and takes another plan where the assembler says that the
     pick spills registers. */
  const char *plan;
  /* Where artifacts are kept between runs. NULL: nowhere; "": in the user's
     cache directory, XDG_CACHE_HOME/attn. It is made for this user alone; one
     that others own or may write to is not used, which the log says. */
  const char *cache_directory;
  /* The ptxas to use, or the root of a CUDA Toolkit that has one; "": the one
     on the PATH, if any. NULL: none, the artifact then holds PTX only and the
     driver compiles it when it is loaded. */
  const char *ptxas;
  /* Since API version 2. Names of optional passes, with commas between them,
     that shall not run, or shall run although the target does not by default:
     "warp-specialize,tile-overlap-products". The kernel gets slower, or faster,
     never wrong. They change the plan, which names what differs from the
     default. NULL or "": what the plan says. */
  const char *disabled_passes;
  const char *enabled_passes;
  /* A file of measured plans, as attn-bench writes it: the fastest one is taken
     where no plan is given. NULL or "": none. */
  const char *results_file;
  /* Since API version 4. The processor that a kernel for the CPU is compiled
     for, in LLVM's words: "native" for the one at hand, "x86-64-v3", ...;
     commas and features to add or to do without may follow, as in
     "native,-avx512bf16". NULL or "": "native". */
  const char *cpu;
  /* Since API version 5. The GPU that the kernel is for, by the name its driver
     gives it, "NVIDIA H200": where no plan is given, the fastest one measured
     on it is taken, from results_file or else from the file that comes with the
     compiler. NULL or "": no GPU in particular. */
  const char *gpu;
  /* Since API version 7. Which functions: ATTN_FORWARD, the one of the text;
     ATTN_BACKWARD, its gradients, which attn-differentiate makes and calls
     NAME_backward; ATTN_BOTH, an artifact with both (for a GPU only). Since API
     version 10: ATTN_JVP, the function with its tangents, NAME_jvp. */
  int32_t functions;
  /* Since API version 7. 1: there is a gradient of lse, too; captures of floats
     have none. */
  int32_t lse_gradient, no_capture_gradients;
  /* Since API version 7. With ATTN_BOTH the plan of the gradients, as `plan` is
     that of the function; NULL or "": the compiler picks. */
  const char *backward_plan;
  /* Since API version 11, for a GPU only. The sizes of a launch: where the plan
     is a rule over several, the one that is for these sizes is compiled alone,
     which takes less time. Launches of other sizes run, too, but by that plan.
     For few queries with many keys a rule has plans only then.
     The manifest says which variant of which rule it is, "variant_of_rule" and
     "of_rule", so that the host can tell which other sizes it is meant for;
     where it says neither, there is one plan, or the cache had them all. NULL:
     all plans are compiled, and each launch chooses. */
  const AttnLaunchSizes *sizes;
} AttnCompileOptions;

enum { ATTN_FORWARD = 0, ATTN_BACKWARD = 1, ATTN_BOTH = 2, ATTN_JVP = 3 };

/* Compiles MLIR text with one function that holds one attn.attention; of one
   with several, with other operations around them, or in linalg, each attention
   is a function of the artifact, NAME_attention_0 and on. NULL options: all
   defaults. Texts that MLIR's parser is known not to survive are refused; a
   fault in it that nobody knows of ends the process: compile what strangers
   wrote with attn-compile, in a process of its own. Works on as many threads as
   the calling one has processors, and ends the others; the artifact does not
   depend on them. */
ATTN_EXPORT AttnArtifact *attnCompile(const char *text, size_t size,
                                      const AttnCompileOptions *options);
/* The same for the CPU this process runs on; only `plan`, the results, the
   passes, `cpu`, `functions` and what gradients there are, are read; a `gpu`,
   `sizes`, ATTN_BOTH, and several attentions, are errors: a kernel is one
   function. */
ATTN_EXPORT AttnKernel *attnCompileForCPU(const char *text, size_t size,
                                          const AttnCompileOptions *options);

/* Since API version 8. What attn-raise makes of MLIR text: graphs of linalg,
   tensor, arith and math that compute attention are attn.attention, what is not
   proved to stays as it is. */
typedef struct AttnRaised AttnRaised;
ATTN_EXPORT AttnRaised *attnRaise(const char *text, size_t size);
ATTN_EXPORT void attnRaisedDestroy(AttnRaised *raised);
/* The text after it, in MLIR's own form. */
ATTN_EXPORT const char *attnRaisedGetText(const AttnRaised *raised);
/* One line for each graph that looks like attention: "12:8: raised: attention
   with scale 0.125, mask", or "12:8: not raised: " and the edge that failed;
   the place is that of the graph's last product in the text that was given. */
ATTN_EXPORT const char *attnRaisedGetLog(const AttnRaised *raised);
/* How many were raised. */
ATTN_EXPORT int attnRaisedGetCount(const AttnRaised *raised);

/*===----------------------------------------------------------------------===*\
|* Artifacts                                                                  *|
\*===----------------------------------------------------------------------===*/

/* From the bytes of an artifact file. */
ATTN_EXPORT AttnArtifact *attnArtifactParse(const void *bytes, size_t size);
ATTN_EXPORT void attnArtifactDestroy(AttnArtifact *artifact);
/* The bytes of an artifact file. */
ATTN_EXPORT const void *attnArtifactGetBytes(const AttnArtifact *artifact,
                                             size_t *size);
/* Since API version 7. An artifact may hold several functions: one, then its
   gradients, for each attention. How many, and their names; what else is said
   of an artifact is said of the first, and attnLoad loads that one. */
ATTN_EXPORT int attnArtifactGetFunctionCount(const AttnArtifact *artifact);
ATTN_EXPORT const char *attnArtifactGetName(const AttnArtifact *artifact,
                                            int number);
/* Since API version 7. An artifact of that function alone, to load and launch;
   the caller destroys it. */
ATTN_EXPORT AttnArtifact *attnArtifactCopyFunction(const AttnArtifact *artifact,
                                                   int number);
/* Arguments, launch rule, plan, resources: JSON text. */
ATTN_EXPORT const char *attnArtifactGetManifest(const AttnArtifact *artifact);
/* The PTX text; "" if there is none. */
ATTN_EXPORT const char *attnArtifactGetPTX(const AttnArtifact *artifact);
/* The cubin; size 0 if there is none. */
ATTN_EXPORT const void *attnArtifactGetCubin(const AttnArtifact *artifact,
                                             size_t *size);
/* Warnings and remarks of the compilation, one per line; "" for an artifact
   that was parsed or came from the cache. */
ATTN_EXPORT const char *attnArtifactGetLog(const AttnArtifact *artifact);
/* 1 if the artifact came from the cache, else 0. */
ATTN_EXPORT int attnArtifactIsFromCache(const AttnArtifact *artifact);

/*===----------------------------------------------------------------------===*\
|* Running                                                                    *|
\*===----------------------------------------------------------------------===*/

/* A view of a tensor; sizes and strides, in elements, are read during the call
   only. Device memory for a GPU kernel, host memory for a CPU kernel. */
typedef struct AttnTensor {
  void *data;
  int64_t rank;
  const int64_t *sizes;
  const int64_t *strides;
} AttnTensor;

enum { ATTN_TENSOR = 0, ATTN_INTEGER = 1, ATTN_REAL = 2 };

typedef struct AttnArgument {
  int32_t kind; /* ATTN_TENSOR, ATTN_INTEGER or ATTN_REAL */
  union {
    AttnTensor tensor;
    int64_t integer;
    double real;
  } value;
} AttnArgument;

/* Loads onto a GPU: number `device`, or -1 for the device of the current CUDA
   context of this thread (device 0's primary context where there is none). */
ATTN_EXPORT AttnKernel *attnLoad(const AttnArtifact *artifact, int device);
/* Since API version 6. The same, but every launch runs that variant: the rule
   of the artifact does not count. */
ATTN_EXPORT AttnKernel *attnLoadVariant(const AttnArtifact *artifact,
                                        int device, int variant);
ATTN_EXPORT void attnKernelDestroy(AttnKernel *kernel);
/* Puts the kernel into `stream` (a CUstream or cudaStream_t; NULL: the default
   stream) and returns; a CPU kernel has run when the call returns, and ignores
   `stream`. Arguments: those of the source function, then one tensor for each
   of its results. Everything that can be wrong with them is checked: an element
   of a result, say, shares memory neither with another one nor with another
   argument. Where all results are empty nothing is done. Kernels want rows
   without gaps between elements and, on a GPU, addresses that are multiples of
   16 bytes: a tensor of rank up to 4 that lies otherwise is copied into memory
   of the launch before, or from there after the kernel. */
ATTN_EXPORT int attnLaunch(const AttnKernel *kernel,
                           const AttnArgument *arguments, size_t count,
                           void *stream);
/* Since API version 2. Some kernels need memory of their own for a launch (the
   block map of a mask that only data decide, copies of tensors). attnLaunch
   allocates it in the order of the stream; who wants to allocate it himself
   asks for its size and launches with it. Device memory, aligned to 256 bytes,
   that nothing else uses until the launch is done; NULL and 0 where the size is
   0. The memory of a launch that is captured in a graph is the graph's own:
   instances of one graph run one after the other. */
ATTN_EXPORT int attnGetWorkspaceBytes(const AttnKernel *kernel,
                                      const AttnArgument *arguments,
                                      size_t count, size_t *bytes);
ATTN_EXPORT int attnLaunchWithWorkspace(const AttnKernel *kernel,
                                        const AttnArgument *arguments,
                                        size_t count, void *workspace,
                                        size_t workspace_bytes, void *stream);
/* Since API version 9. For bindings to Python: the arguments of a launch from
   objects of a library that shows its tensors to C (`exchange`: DLPack's
   DLPackExchangeAPI, version 1.x). For each argument i of the kernel that is a
   tensor, arguments[i] becomes a view of objects[i], with sizes and strides in
   `shapes`, which has room for `room` numbers; what stands in `arguments` for
   scalars stays. Tensors lie on a device of `device_type`, 1 for the CPU or 2
   for CUDA, and of number `device`, -1: of any. To be called with Python's lock
   held. A failure has no particular message: an object is of another element
   type, rank or device than the kernel wants, or of a kind that its library
   does not show (Python's error is set then). What else is wrong attnLaunch
   will say. */
ATTN_EXPORT int attnViewObjects(const AttnKernel *kernel, const void *exchange,
                                void *const *objects, size_t count,
                                int device_type, int device,
                                AttnArgument *arguments, int64_t *shapes,
                                size_t room);
/* Since API version 12. What attnLaunchObjects wants of Python. */
typedef struct AttnPython {
  size_t struct_size; /* sizeof(AttnPython) */
  /* Functions of Python's stable interface: PyTuple_Size, PyTuple_GetItem,
     PyObject_Type, PyObject_GetAttr, PyObject_CallMethodObjArgs, Py_DecRef,
     PyLong_AsLongLongAndOverflow, PyFloat_AsDouble, PyEval_SaveThread and
     PyEval_RestoreThread. */
  ptrdiff_t (*tuple_size)(void *tuple);
  void *(*tuple_item)(void *tuple, ptrdiff_t number);
  void *(*type)(void *object);
  void *(*attribute)(void *object, void *name);
  void *(*call)(void *object, void *name, ...);
  void (*release)(void *object);
  long long (*integer)(void *object, int *overflow);
  double (*real)(void *object);
  void *(*unlock)(void);
  void (*lock)(void *thread);
  /* Objects: False, the types int, bool and float, those of plain tensors, and
     the names "is_neg", of a method, and "requires_grad". */
  void *no, *integer_type, *bool_type, *real_type, *tensor_types[2];
  void *is_neg, *requires_grad;
  /* As attnViewObjects has them. */
  const void *exchange;
  int32_t device_type, device;
} AttnPython;
enum {
  ATTN_LAUNCHED = 0,
  ATTN_FAILED = 1,
  ATTN_COPIED = 2,
  ATTN_NOT_PLAIN = 3
};
/* Since API version 12. For bindings to Python: attnLaunch on the objects of a
   tuple, in one call. Tensors are of the types that `python` has, their signs
   are in memory (is_neg() is False), they require no gradients where
   `records_gradients` is not 0, and are else as attnViewObjects wants them;
   numbers are an int, a bool or a float. To be called with Python's lock held,
   which others may have while the kernel is launched. Returns ATTN_LAUNCHED;
   ATTN_COPIED: the same, and launches of this kernel have copied tensors;
   ATTN_FAILED, with a message; or ATTN_NOT_PLAIN, where an object is another
   one, without a message (Python's error may be set) and with nothing done. */
ATTN_EXPORT int attnLaunchObjects(const AttnKernel *kernel,
                                  const AttnPython *python, void *tuple,
                                  int records_gradients, void *stream);
/* Since API version 3. What such a launch does besides its kernels: a line for
   each tensor that is copied, with the reason; "" where it copies nothing. The
   text lives until the next call of this function, or of attnChooseVariant, in
   this thread. */
ATTN_EXPORT int attnDescribeLaunch(const AttnKernel *kernel,
                                   const AttnArgument *arguments, size_t count,
                                   const char **text);
/* Since API version 6. Which variant such a launch runs, by its number in the
   manifest, and why: "query_length <= 1024, with query_length = 512"; "" where
   there is no choice. `reason` may be NULL; the text lives as that of
   attnDescribeLaunch. */
ATTN_EXPORT int attnChooseVariant(const AttnKernel *kernel,
                                  const AttnArgument *arguments, size_t count,
                                  int *variant, const char **reason);
/* Since API version 3. How many tensors the launches of a kernel have copied.
 */
ATTN_EXPORT int64_t attnKernelGetRelayouts(const AttnKernel *kernel);
/* Waits for all work on the kernel's device. */
ATTN_EXPORT int attnSynchronize(const AttnKernel *kernel);
/* As attnArtifactGetManifest. */
ATTN_EXPORT const char *attnKernelGetManifest(const AttnKernel *kernel);
/* What the driver said when it compiled the PTX; "" where it did not. */
ATTN_EXPORT const char *attnKernelGetLog(const AttnKernel *kernel);
/* Registers, and bytes of local memory, per thread of a GPU kernel; -1 for a
   CPU kernel. */
ATTN_EXPORT int attnKernelGetRegisters(const AttnKernel *kernel);
ATTN_EXPORT int attnKernelGetLocalBytes(const AttnKernel *kernel);

#ifdef __cplusplus
}
#endif

#endif /* ATTN_C_ATTN_H */
