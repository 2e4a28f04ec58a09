// @ts-check
// Sentences with colours in them: a part in the colour of what it names is written {key text}.

/** Text with {key …} in it as pieces with colours. @param {string} text @returns {import("./words.js").Piece[]} */
export const inked = (text) =>
  text.split(/(\{\w+ [^}]*\})/).map((part) => {
    const [, key, inside] = /^\{(\w+) (.*)\}$/.exec(part) ?? [];
    return key ? { text: inside, key } : { text: part };
  });
