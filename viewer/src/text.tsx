// A sentence of the report: what stands between backticks is code.

export const Text = ({ text }: { text: string }) => (
  <>
    {text.split("`").map((part, i) => (i % 2 ? <code key={i}>{part}</code> : part))}
  </>
);
