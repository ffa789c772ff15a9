//===- InputText.cpp - text that MLIR can parse -----------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Pipelines/InputText.h"

#include "ParseGuard.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace attn;

/// Far more than any program has, far less than a stack of 8 MiB holds.
static constexpr size_t maxNesting = 256;
static constexpr size_t maxTerms = 1024;
static constexpr uint64_t maxResultNumber = 65535;
static constexpr size_t maxDigits = 1024;
/// What an alias stands for, with all aliases in it written out.
static constexpr size_t maxAliasSize = 1 << 20, maxAliasDepth = 256;
/// Operands that one operation makes a tensor of.
static constexpr uint64_t maxElements = 1 << 20;
/// Of the bytes of a resource.
static constexpr uint32_t maxAlignment = 4096;

namespace {
/// Reads a text once, as the lexer would: strings and comments hold nothing.
class Scanner {
public:
  explicit Scanner(StringRef text) : text(text) {}

  std::optional<TextFault> run();

private:
  bool startsWith(StringRef prefix) const {
    return text.substr(at).starts_with(prefix);
  }
  void skipString();
  void skipWord();
  void open();
  void close(char bracket);
  void readOperator();
  void readName();
  void readIteratorTypes();
  void readPermutation();
  void readIndexingMaps();
  void readElements();
  void readReassociation();
  void readArray();
  void readNumber();
  void readResource();
  void readAlias();
  void endDefinition() {
    if (definition)
      aliases[definition->name] = definition->alias;
    definition.reset();
  }
  void refuse(size_t offset, const Twine &message) {
    if (!fault)
      fault = TextFault{offset, message.str()};
  }

  StringRef text;
  size_t at = 0;
  size_t nesting = 0, terms = 0;
  /// What was written out for an alias.
  struct Alias {
    size_t size = 1, depth = 1;
    bool isMap = false;
    /// Of a tensor or vector.
    uint64_t elements = 1;
  };
  llvm::StringMap<Alias> aliases;
  /// The alias that is being defined, in brackets of this depth.
  struct AliasDefinition {
    StringRef name;
    size_t nesting;
    Alias alias;
  };
  std::optional<AliasDefinition> definition;
  /// Between the marks of resources.
  bool isInResources = false;
  /// The last operation is in generic form: its name stands in quotes.
  bool isGeneric = false;
  std::optional<TextFault> fault;
};
} // namespace

void Scanner::skipString() {
  if (isInResources)
    readResource();
  ++at;
  while (at < text.size() && text[at] != '"' && text[at] != '\n')
    at += text[at] == '\\' ? 2 : 1;
  at = std::min(at + 1, text.size());
  if (text.substr(at).ltrim().starts_with("("))
    isGeneric = true;
}

static bool isWordCharacter(char c) {
  return llvm::isAlnum(c) || c == '_' || c == '.' || c == '$';
}

void Scanner::skipWord() {
  size_t begin = at;
  while (at < text.size() && isWordCharacter(text[at]))
    ++at;
  StringRef word = text.slice(begin, at);
  if (word == "iterator_types")
    readIteratorTypes();
  else if (word == "permutation" || word == "dimensions")
    readPermutation();
  else if (word == "indexing_maps")
    readIndexingMaps();
  else if (word.ends_with(".from_elements"))
    readElements();
  else if (word.ends_with(".collapse_shape") || word.ends_with(".expand_shape"))
    readReassociation();
  else if (word == "array")
    readArray();
  else if (word.contains('.') && llvm::isAlpha(word.front()))
    isGeneric = false;
}

void Scanner::open() {
  terms = 0;
  if (++nesting > maxNesting)
    refuse(at, "brackets nest deeper than " + Twine(maxNesting));
  ++at;
}

void Scanner::close(char bracket) {
  bool isArrow = bracket == '>' && at > 0 && text[at - 1] == '-';
  bool isCompare =
      bracket == '>' && at + 1 < text.size() && text[at + 1] == '=';
  if (!isArrow && !isCompare && nesting > 0)
    --nesting;
  terms = 0;
  ++at;
}

void Scanner::readOperator() {
  if (++terms > maxTerms)
    refuse(at, "a sum or product has more than " + Twine(maxTerms) + " terms");
  ++at;
}

/// `%name#12`.
void Scanner::readName() {
  terms = 0;
  ++at;
  while (at < text.size() && (isWordCharacter(text[at]) || text[at] == '-'))
    ++at;
  if (at >= text.size() || text[at] != '#')
    return;
  size_t begin = ++at;
  while (at < text.size() && llvm::isDigit(text[at]))
    ++at;
  uint64_t number = 0;
  StringRef digits = text.slice(begin, at);
  if (!digits.empty() &&
      (digits.getAsInteger(10, number) || number > maxResultNumber))
    refuse(begin, "result number " + digits + " is larger than " +
                      Twine(maxResultNumber));
}

/// `iterator_types = ["parallel", …]`: strings, but in the generic form.
void Scanner::readIteratorTypes() {
  StringRef rest = text.substr(at).ltrim();
  if (isGeneric || !rest.consume_front("="))
    return;
  rest = rest.ltrim();
  if (!rest.consume_front("["))
    return;
  while (true) {
    rest = rest.ltrim();
    if (rest.empty() || rest.front() == ']')
      return;
    if (rest.front() != '"')
      return refuse(rest.data() - text.data(),
                    "iterator types are expected to be strings");
    rest = rest.drop_front();
    rest =
        rest.drop_front(std::min(rest.find('"'), rest.size() - 1) + 1).ltrim();
    rest.consume_front(",");
  }
}

/// `permutation = [1, 0]` of linalg.transpose, `dimensions = [1]` of
/// linalg.broadcast: never without their numbers.
void Scanner::readPermutation() {
  StringRef rest = text.substr(at).ltrim();
  if (isGeneric || !rest.consume_front("="))
    return;
  rest = rest.ltrim();
  // Of another operation's attribute dictionary: that may hold anything.
  if (rest.starts_with("array"))
    return;
  size_t begin = rest.data() - text.data();
  StringRef numbers = rest.take_until([](char c) { return c == ']'; });
  bool isList = numbers.consume_front("[") && rest.contains(']');
  numbers = numbers.trim();
  while (isList && !numbers.empty()) {
    auto [number, rest] = numbers.split(',');
    int64_t value;
    isList = !number.trim().getAsInteger(10, value) &&
             (!rest.trim().empty() || !numbers.contains(','));
    numbers = rest;
  }
  if (!isList)
    refuse(begin, "permutations and dimensions are expected to be lists of "
                  "numbers, as in [1, 0]");
}

/// `indexing_maps = [affine_map<…>, #map]`: not another attribute, or its
/// alias.
void Scanner::readIndexingMaps() {
  StringRef rest = text.substr(at).ltrim();
  if (!rest.consume_front("=") || !(rest = rest.ltrim()).consume_front("["))
    return;
  for (rest = rest.ltrim(); !rest.empty() && rest.front() != ']';
       rest = rest.ltrim()) {
    StringRef name = rest.take_while([](char c) {
      return isWordCharacter(c) || c == '-' || c == '#' || c == '"';
    });
    auto alias = aliases.find(name);
    bool isAlias = name.starts_with("#") && !name.contains('.');
    bool isOther = alias != aliases.end() && !alias->second.isMap;
    if (isOther || (name != "affine_map" && !isAlias))
      return refuse(rest.data() - text.data(),
                    "indexing maps are expected to be affine maps, " + name +
                        " is none");
    rest = rest.drop_front(name.size());
    // `<(i, j) -> (i)>` of a map in place.
    if (!isAlias)
      for (bool isEnd = false; !rest.empty() && !isEnd;
           rest = rest.drop_front()) {
        isEnd = rest.starts_with(">");
        if (rest.starts_with("->"))
          rest = rest.drop_front();
      }
    rest = rest.ltrim();
    rest.consume_front(",");
  }
}

/// The elements of `tensor<4x?x2xf32>` or `vector<…>`, of the known sizes; 1 of
/// anything else.
static uint64_t countElements(StringRef type) {
  uint64_t count = 1, size;
  if (!type.consume_front("tensor<") && !type.consume_front("vector<"))
    return count;
  while (true) {
    type = type.ltrim();
    if (!type.consume_front("?")) {
      type.consume_front("[");
      if (type.consumeInteger(10, size))
        return count;
      type.consume_front("]");
      count = llvm::SaturatingMultiply(count, size);
    }
    if (!type.consume_front("x"))
      return count;
  }
}

/// `tensor.from_elements %a, %b : tensor<2xf32>`: an operand for each element.
void Scanner::readElements() {
  StringRef rest = text.substr(at).split('\n').first;
  uint64_t count = 1;
  while (rest.contains(':')) {
    rest = rest.split(':').second.ltrim();
    StringRef alias =
        rest.take_while([](char c) { return isWordCharacter(c) || c == '!'; });
    count =
        std::max({count, countElements(rest), aliases.lookup(alias).elements});
  }
  if (count > maxElements)
    refuse(at, "a tensor is made of " + Twine(count) +
                   " operands, expected at most " + Twine(maxElements));
}

/// `tensor.collapse_shape %t [[0, 1], [2]]`: numbers of dimensions.
void Scanner::readReassociation() {
  StringRef rest = text.substr(at).split('\n').first;
  rest = rest.substr(rest.find("[["));
  rest = rest.take_front(rest.find("]]"));
  while (!(rest = rest.drop_until([](char c) {
            return c == '-' || llvm::isDigit(c);
          })).empty()) {
    StringRef number =
        rest.take_while([](char c) { return c == '-' || llvm::isDigit(c); });
    int64_t dimension;
    if (number.getAsInteger(10, dimension) || dimension < 0 ||
        dimension > static_cast<int64_t>(maxResultNumber))
      return refuse(number.data() - text.data(),
                    number + " is not the number of a dimension");
    rest = rest.drop_front(number.size());
  }
}

/// `array<i64: 0, 2>`: of integers or floats.
void Scanner::readArray() {
  StringRef rest = text.substr(at);
  if (!rest.consume_front("<"))
    return;
  rest = rest.ltrim();
  StringRef type = rest.take_while(isWordCharacter);
  bool isNumber = type.starts_with("f") || type == "bf16" || type == "tf32";
  for (StringRef prefix : {"i", "si", "ui"}) {
    StringRef width = type;
    isNumber |= width.consume_front(prefix) && !width.empty() &&
                llvm::all_of(width, llvm::isDigit);
  }
  if (!isNumber)
    refuse(rest.data() - text.data(),
           "an array is expected to be of integers or floats, as in "
           "array<i64: 0>");
}

/// A number of many digits is read in the square of their time.
void Scanner::readNumber() {
  size_t begin = at;
  bool isHex = startsWith("0x");
  at += isHex ? 2 : 0;
  while (at < text.size() &&
         (isHex ? llvm::isHexDigit(text[at]) : llvm::isDigit(text[at])))
    ++at;
  if (at - begin > maxDigits)
    refuse(begin, "a number has more than " + Twine(maxDigits) + " digits");
}

/// "0x08000000…": the alignment, its lowest byte first, then the bytes.
void Scanner::readResource() {
  StringRef digits = text.substr(at);
  uint32_t swapped;
  if (!digits.consume_front("\"0x") ||
      digits.take_front(8).getAsInteger(16, swapped))
    return;
  uint32_t alignment = llvm::byteswap(swapped);
  if (digits.size() >= 8 &&
      (!llvm::isPowerOf2_32(alignment) || alignment > maxAlignment))
    refuse(at, "the alignment of a resource is " + Twine(alignment) +
                   ", expected a power of two up to " + Twine(maxAlignment));
}

/// `#name` or `!name`, defined or used.
void Scanner::readAlias() {
  size_t begin = at++;
  while (at < text.size() && (isWordCharacter(text[at]) || text[at] == '-'))
    ++at;
  StringRef name = text.slice(begin, at);
  StringRef rest = text.substr(at).ltrim(' ');
  bool isInside = definition && definition->nesting != nesting;
  if (!isInside && rest.starts_with("=") && !rest.starts_with("==")) {
    endDefinition();
    definition = AliasDefinition{name, nesting, {}};
    rest = rest.drop_front().ltrim();
    definition->alias.isMap = rest.starts_with("affine_map");
    definition->alias.elements = countElements(rest);
    return;
  }
  if (!definition)
    return;
  Alias used = aliases.lookup(name), &whole = definition->alias;
  whole.size += used.size;
  whole.depth = std::max(whole.depth, used.depth + 1);
  if (whole.size > maxAliasSize)
    refuse(begin,
           "an alias stands for more than " + Twine(maxAliasSize) + " others");
  else if (whole.depth > maxAliasDepth)
    refuse(begin, "aliases nest deeper than " + Twine(maxAliasDepth));
}

std::optional<TextFault> Scanner::run() {
  while (at < text.size() && !fault) {
    char c = text[at];
    if (c == '"')
      skipString();
    else if (startsWith("//"))
      at = std::min(text.find('\n', at), text.size());
    else if (llvm::isAlpha(c) || c == '_')
      skipWord();
    else if (llvm::isDigit(c))
      readNumber();
    else if (c == '%')
      readName();
    else if ((c == '#' && !startsWith("#-}")) || c == '!')
      readAlias();
    else if (startsWith("{-#") || startsWith("#-}")) {
      isInResources = c == '{';
      at += 3;
    } else if (StringRef("([{<").contains(c))
      open();
    else if (StringRef(")]}>").contains(c))
      close(c);
    else if (c == '+' || c == '*' || (c == '-' && !startsWith("->")))
      readOperator();
    else {
      if (c == ',' || c == '=' || c == ':')
        terms = 0;
      if (c == '\n' && definition && definition->nesting == nesting)
        endDefinition();
      ++at;
    }
  }
  return fault;
}

std::optional<TextFault> attn::findTextFault(StringRef text) {
  // What its reader would not survive nobody can see in it.
  if (isBytecode(llvm::MemoryBufferRef(text, "")))
    return TextFault{0, "this is MLIR bytecode, expected text"};
  return Scanner(text).run();
}

std::optional<TextFault> attn::findEscapedValue(StringRef text,
                                                MLIRContext *context) {
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text),
                             SMLoc());
  const char *begin = sources.getMemoryBuffer(1)->getBufferStart();
  ScopedDiagnosticHandler silence(context, [](Diagnostic &) {});
  ParseGuard guard(context);
  Block block;
  (void)parseAsmSourceFile(sources, &block, ParserConfig(context, false),
                           &guard.state);
  if (!guard.findEscape())
    return std::nullopt;
  return TextFault{static_cast<size_t>(guard.findEscape() - begin),
                   "a value of this block is used outside of its region"};
}

OwningOpRef<ModuleOp> attn::parseModule(const llvm::SourceMgr &sources,
                                        MLIRContext *context) {
  Block block;
  {
    ParseGuard guard(context);
    if (failed(parseAsmSourceFile(sources, &block, ParserConfig(context, false),
                                  &guard.state)))
      return {};
  }
  StringRef name =
      sources.getMemoryBuffer(sources.getMainFileID())->getBufferIdentifier();
  auto module = detail::constructContainerOpForParserIfNecessary<ModuleOp>(
      &block, context, FileLineColLoc::get(context, name, 0, 0));
  if (!module || failed(verify(*module)))
    return {};
  return module;
}

OwningOpRef<ModuleOp> attn::parseInput(StringRef text, StringRef name,
                                       MLIRContext *context) {
  if (std::optional<TextFault> fault = findTextFault(text)) {
    StringRef before = text.take_front(fault->offset);
    unsigned line = before.count('\n') + 1;
    unsigned column = before.size() - (before.rfind('\n') + 1) + 1;
    emitError(FileLineColLoc::get(context, name, line, column))
        << fault->message;
    return {};
  }
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, name),
                             SMLoc());
  return parseModule(sources, context);
}
