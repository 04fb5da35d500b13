"""A transformers Trainer: all of its work is inside of libraries."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, index):
        ids = torch.randint(0, 4096, (256,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": ids, "labels": ids}


def main():
    config = LlamaConfig(
        vocab_size=4096, hidden_size=512, intermediate_size=1536, num_hidden_layers=6,
        num_attention_heads=8, num_key_value_heads=8,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    arguments = TrainingArguments(
        output_dir="out", per_device_train_batch_size=8, max_steps=30, logging_steps=10,
        save_strategy="no", report_to=[], bf16=True, dataloader_num_workers=0, disable_tqdm=True,
    )  # fmt: skip
    trainer = Trainer(model=model, args=arguments, train_dataset=Tokens())
    trainer.train()


if __name__ == "__main__":
    main()
